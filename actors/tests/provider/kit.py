"""What the fake providers share. Not a kit for providers: these misbehave on purpose."""
import json, os, signal, subprocess, sys, threading, time

SCHEMA = {
    "name": "dns", "version": "0.4.1", "protocol": "1",
    "config": {"endpoint": {"type": "string", "required": True},
               "retries": {"type": "number", "required": False, "default": 3}},
    "actions": {
        "record_create": {
            "description": "create one record",
            "attrs": {"zone": {"type": "string", "required": True}, "name": {"type": "string", "required": True},
                      "ttl": {"type": "number", "required": False, "default": 300},
                      "labels": {"type": "map(string)", "required": False}},
            "outputs": {"type": "object({fqdn=string,record_id=string})", "required": False}},
        "record_delete": {"attrs": {"zone": {"type": "string", "required": True},
                                    "record_id": {"type": "string", "required": True}}}}}

# Actions that take and give anything.
LOOSE = {"name": "loose", "version": "1", "protocol": "1", "config": {},
         "actions": {"do": {"attrs": {"x": {"type": "any"}}, "outputs": {"type": "any"}}}}
here = os.path.dirname(os.path.abspath(__file__))
lock = threading.Lock()

def declaring(**extensions):
    return dict(LOOSE, x_extensions=dict(extensions))

def raw(text):
    with lock:
        sys.stdout.write(text)
        sys.stdout.flush()

def send(frame):
    raw(json.dumps(frame) + "\n")

def ok(id, result=None):
    send({"id": id, "result": {} if result is None else result})

def fail(id, code, message="no", **more):
    send({"id": id, "error": dict({"code": code, "message": message}, **more)})

def note(name, text=""):
    with open(os.path.join(here, name), "a") as file:
        file.write(text + "\n")

def frames():
    for line in sys.stdin:
        if line.strip():
            note("received", line.rstrip("\n"))
            yield json.loads(line)

def serve(schema, execute, other=None, configured=None):
    """The tutorial's loop; execute gets the id and the params and answers by itself."""
    for frame in frames():
        id, method, params = frame.get("id"), frame["method"], frame.get("params", {})
        if method == "describe":
            ok(id, {"schema": schema})
        elif method == "configure":
            (configured or (lambda id, _: ok(id)))(id, params)
        elif method == "execute":
            execute(id, params)
        elif method == "shutdown":
            ok(id)
            break
        elif other:
            other(frame)
        else:
            fail(id, "unknown_method", method)
