"""A provider of made-up things, kept in a file beside it. Files beside it say how it behaves; `calls` says what it was asked."""
import json
import os
import select
import sys
import time

HERE = os.path.dirname(os.path.abspath(sys.argv[0]))
BUFFER = b""


def beside(name):
    return os.path.join(HERE, name)


def load(name, default):
    try:
        with open(beside(name)) as file:
            return json.load(file)
    except FileNotFoundError:
        return default


def save(name, value):
    new = beside("%s.%d" % (name, os.getpid()))
    with open(new, "w") as file:
        json.dump(value, file)
    os.replace(new, beside(name))


def note(what, **more):
    more["what"] = what
    with open(beside("calls"), "ab", buffering=0) as file:
        file.write((json.dumps(more, sort_keys=True) + "\n").encode())


def attr(type, **more):
    return dict(type=type, **more)


SCHEMA = {
    "name": "things", "version": "1.0.0", "protocol": "1",
    "config": {"token": attr("string", x_sensitive=True), "plain": attr("string")},
    "actions": {
        "make": {
            "attrs": {"name": attr("string", required=True), "how": attr("string"), "pin": attr("string", x_sensitive=True),
                      "note": attr("string"), "size": attr("number", default=3), "tags": attr("set(string)"),
                      "kind": attr("string", x_enum=["a", "b"]), "file": attr("string", x_path=True),
                      "after": attr("string"), "touch": attr("string")},
            "outputs": attr("object({id=string,size=number})"), "x_returns_undo": True},
        "unmake": {"attrs": {"id": attr("string", required=True), "pin": attr("string", x_sensitive=True)}},
        "silent": {"attrs": {"name": attr("string")}}}}
for name, value in load("more.json", {}).items():
    if name == "actions":
        for action, more in value.items():
            SCHEMA["actions"].setdefault(action, {}).update(more)
    else:
        SCHEMA[name] = value


def read(limit):
    """The next line within the limit, None when there is none; leaves when the host has gone."""
    global BUFFER
    until = None if limit is None else time.monotonic() + limit
    while b"\n" not in BUFFER:
        left = None if until is None else max(0, until - time.monotonic())
        if not select.select([0], [], [], left)[0]:
            return None
        some = os.read(0, 65536)
        if not some:
            os._exit(0)
        BUFFER += some
    line, BUFFER = BUFFER.split(b"\n", 1)
    return json.loads(line)


def send(frame):
    os.write(1, (json.dumps(frame) + "\n").encode())


class Failure(Exception):
    pass


def pause(id, condition):
    """Until the condition holds; meanwhile a cancel is heard."""
    while not condition():
        frame = read(0.01)
        if frame and frame.get("method") == "x/cancel":
            note("cancelled", id=frame["params"]["id"])
            raise Failure({"code": "cancelled", "message": "stopped", "x_state": "none"})


def make(id, params):
    attrs, how = params["attrs"], params["attrs"].get("how", "")
    name = attrs["name"]
    if "touch" in attrs:
        open(beside(attrs["touch"]), "w").close()
    if "after" in attrs:
        pause(id, lambda: os.path.exists(beside(attrs["after"])))
    if how == "old" and params.get("undo"):
        raise Failure({"code": "invalid_request", "message": "unknown member undo"})
    if how.startswith("fail:"):
        raise Failure({"code": how[5:], "message": "no: " + attrs.get("note", "")})
    if how.startswith("slow:"):
        until = time.monotonic() + float(how[5:])
        pause(id, lambda: time.monotonic() > until)
    if how == "progress":
        send({"method": "x/progress", "params": {"id": id, "done": 1, "total": 2, "message": "half of it"}})
        time.sleep(0.1)
    if how == "once" and not os.path.exists(beside("tried")):
        open(beside("tried"), "w").close()
        raise Failure({"code": "unavailable", "message": "not now", "x_retry_after_ms": 10})
    if how == "die":
        os._exit(3)
    if how == "stuck":
        pause(id, lambda: False)
    answer = {"outputs": {"id": "id-" + name, "size": attrs["size"]},
              "undo": {"action": "unmake", "attrs": {"id": "id-" + name}}}
    if "pin" in attrs:
        answer["undo"]["attrs"]["pin"] = attrs["pin"]
    things = load("things.json", {})
    things["id-" + name] = attrs.get("pin", "")
    save("things.json", things)
    keys = load("keys.json", {})
    keys[(params.get("x_call") or {}).get("key", name)] = answer
    save("keys.json", keys)
    if how == "die-after" and not os.path.exists(beside("died")):
        open(beside("died"), "w").close()
        os._exit(3)
    if not params.get("undo"):
        del answer["undo"]
    return answer


def unmake(id, params):
    attrs = params["attrs"]
    time.sleep(load("undo_slow.json", 0))
    if load("undo_fails.json", 0) > 0:
        save("undo_fails.json", load("undo_fails.json", 0) - 1)
        raise Failure({"code": "failed", "message": "cannot yet"})
    things = load("things.json", {})
    if attrs["id"] not in things:
        raise Failure({"code": "not_found", "message": "no such thing"})
    if things[attrs["id"]] != attrs.get("pin", ""):
        raise Failure({"code": "denied", "message": "another pin"})
    del things[attrs["id"]]
    save("things.json", things)
    return {"outputs": {}}


def answer(frame):
    method, params = frame["method"], frame.get("params", {})
    if method == "describe":
        return {"schema": SCHEMA}
    if method == "configure":
        note("configure", config=params["config"])
        if load("chatty.json", False):
            print(json.dumps(params["config"]), file=sys.stderr, flush=True)
        return {}
    if method == "x/lookup":
        note("lookup", key=params["key"])
        found = load("keys.json", {}).get(params["key"])
        return {"state": "absent"} if found is None else dict(found, state="done")
    if method == "x/validate":
        note("validate", **params)
        return {"diagnostics": load("diagnostics.json", [])}
    if method == "execute":
        call = params.get("x_call") or {}
        note("execute", action=params["action"], attrs=params["attrs"], undo=params.get("undo"), key=call.get("key"))
        if load("chatty.json", False):
            print("asked for " + json.dumps(params["attrs"]), file=sys.stderr, flush=True)
        if params["action"] == "silent":
            return {"outputs": {}}
        return {"make": make, "unmake": unmake}[params["action"]](frame["id"], params)
    raise Failure({"code": "unknown_method", "message": method})


if sys.argv[1:] == ["schema"]:
    note("schema")
    if load("no_schema.json", False):
        sys.exit("no such subcommand")
    print(json.dumps(SCHEMA, indent=1))
    sys.exit(0)
note("start")
while True:
    frame = read(None)
    if "id" not in frame:
        continue
    if frame["method"] == "shutdown":
        send({"id": frame["id"], "result": {}})
        break
    try:
        send({"id": frame["id"], "result": answer(frame)})
    except Failure as failure:
        send({"id": frame["id"], "error": failure.args[0]})
