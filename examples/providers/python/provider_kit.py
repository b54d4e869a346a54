"""All a provider needs besides its own work: copy this file beside yours. No dependencies.

    import provider_kit
    provider_kit.run(SCHEMA, {"action": function}, configure)

A function gets the action's attributes as a dict and gives its outputs as one, or (outputs, undo) with undo = (action, attributes).
It says that it failed by raising Failure("not_found", "no such zone"). Standard output belongs to the protocol: print to sys.stderr.
"""
import json
import os
import signal
import sys
import traceback


class Failure(Exception):
    """Why an action failed: a code, a short message, and more at length where that helps."""

    def __init__(self, code, message, detail=None):
        super().__init__(message)
        self.answer = {"code": code, "message": message}
        if detail:
            self.answer["detail"] = detail


def run(schema, actions, configure=lambda config: None):
    """Serves standard input and output until the host goes; with the argument `schema` only prints the schema."""
    if sys.argv[1:] == ["schema"]:
        print(json.dumps(schema, indent=2))
        return
    if sys.stdin.isatty():
        sys.exit("%s %s is a provider: a host starts it and speaks to it. Try `quartermaster provider check %s`."
                 % (schema["name"], schema["version"], sys.argv[0]))
    out, sys.stdout = sys.stdout, sys.stderr  # whatever prints by accident does no harm
    state = {"configured": False}
    for line in iter(sys.stdin.buffer.readline, b""):  # a line ends with a line feed and nothing else
        if line.strip():
            answer = _answer(json.loads(line), schema, actions, configure, state)
            if answer and not _say(out, json.dumps(answer) + "\n"):
                break
            if state.get("over"):
                return
    if os.getpgrp() == os.getpid():  # the host is gone: what was started here goes as well
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.killpg(0, signal.SIGTERM)


def _say(out, text):
    try:
        out.write(text)
        out.flush()
        return True
    except BrokenPipeError:
        return False


def _answer(frame, schema, actions, configure, state):
    if "id" not in frame:
        return None  # a note, never answered
    try:
        return {"id": frame["id"], "result": _result(frame, schema, actions, configure, state)}
    except Failure as failure:
        return {"id": frame["id"], "error": failure.answer}
    except Exception as error:
        traceback.print_exc()
        return {"id": frame["id"], "error": {"code": "internal", "message": type(error).__name__}}


def _result(frame, schema, actions, configure, state):
    method, params = frame.get("method"), frame.get("params") or {}
    if method == "describe":
        return {"schema": schema}
    if method == "configure":
        configure(params.get("config") or {})
        state["configured"] = True
        return {}
    if method == "shutdown":
        state["over"] = True
        return {}
    if method != "execute":
        raise Failure("unknown_method", "no such method: %s" % method)
    if not state["configured"]:
        raise Failure("not_configured", "configure comes first")
    if params.get("action") not in actions:
        raise Failure("unknown_action", "no such action: %s" % params.get("action"))
    result = actions[params["action"]](params.get("attrs") or {})
    if not isinstance(result, tuple):
        return {"outputs": result or {}}
    outputs, (action, attrs) = result
    return {"outputs": outputs, "undo": {"action": action, "attrs": attrs}}
