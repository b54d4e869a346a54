#!/usr/bin/env python3
"""A provider of made-up things: DNS records, certificates, entries of an inventory. Each is a line of a JSON file, made under the key
of its call, so that the provider can be asked what became of a call (x/lookup) and a call made twice is done once.

    registry.py          speaks JSON Lines
    registry.py schema   prints what it declares

Configuration: `file` holds the things, `log` (if set) gets a line for each call, `refuse` names a file: while it is there, `enter` is
denied. `hold` names a folder: a call waits while a file of the action's name is in it, before (`before-ACTION`) or after
(`after-ACTION`) it was done.
"""
import json
import os
import sys
import time

TEXT = {"type": "string", "required": True}
MADE = {"type": "object({id=string,name=string})"}
SCHEMA = {
    "name": "registry", "version": "1.0.0", "protocol": "1",
    "config": {"file": TEXT, "log": {"type": "string"}, "refuse": {"type": "string"}, "hold": {"type": "string"}},
    "actions": {
        "record_create": {"attrs": {"name": TEXT, "ttl": {"type": "number", "default": 300}}, "outputs": MADE},
        "sign": {"attrs": {"name": TEXT, "record": TEXT, "secret": {"type": "string", "x_sensitive": True}}, "outputs": MADE},
        "enter": {"attrs": {"name": TEXT, "certificate": TEXT}, "outputs": MADE},
        "remove": {"attrs": {"id": TEXT}}},
    "x_extensions": {"call_context": True, "lookup": True}}
config = {}
HOST = os.getppid()


def things(change=None):
    path = config["file"]
    found = json.load(open(path)) if os.path.exists(path) else {}
    if change:
        change(found)
        with open(path + ".new", "w") as file:
            json.dump(found, file)
        os.replace(path + ".new", path)
    return found


def note(line):
    if config.get("log"):
        with open(config["log"], "a") as file:
            file.write(line + "\n")


def hold(place, action):
    path = os.path.join(config["hold"], place + "-" + action) if config.get("hold") else None
    while path and os.path.exists(path) and os.getppid() == HOST:
        time.sleep(0.02)
    # Whoever waits for it was killed.
    if os.getppid() != HOST:
        sys.exit(1)


def made(key, thing):
    return {"outputs": {"id": key, "name": thing["name"]}, "undo": {"action": "remove", "attrs": {"id": key}}}


def execute(params):
    action, attrs, key = params["action"], params["attrs"], params["x_call"]["key"]
    note("begin %s %s" % (action, key))
    hold("before", action)
    if action == "remove":
        gone = things(lambda all: all.pop(attrs["id"], None))
        note("done remove %s" % attrs["id"])
        answer = {"result": {"outputs": {}}}
    elif action == "enter" and config.get("refuse") and os.path.exists(config["refuse"]):
        answer = {"error": {"code": "denied", "message": "the inventory takes no more"}}
    else:
        thing = {"kind": action, "name": attrs["name"]}
        things(lambda all: all.setdefault(key, thing))
        note("done %s %s" % (action, key))
        answer = {"result": made(key, thing)}
    hold("after", action)
    return answer


def lookup(params):
    key = params["key"]
    if "/undo/" in key:
        state = "absent" if key.split("/undo/")[0] in things() else "done"
        return {"result": {"state": state}}
    thing = things().get(key)
    return {"result": {"state": "done", **made(key, thing)} if thing else {"state": "absent"}}


def answer(request):
    method, params = request["method"], request.get("params", {})
    if method == "describe":
        return {"result": {"schema": SCHEMA}}
    if method == "configure":
        config.update(params["config"])
        return {"result": {}}
    if method == "execute":
        return execute(params)
    if method == "x/lookup":
        return lookup(params)
    if method == "shutdown":
        return {"result": {}}
    return {"error": {"code": "unknown_method", "message": "no such method: " + method}}


if __name__ == "__main__":
    if sys.argv[1:] == ["schema"]:
        print(json.dumps(SCHEMA))
        sys.exit(0)
    for line in sys.stdin:
        if line.strip():
            request = json.loads(line)
            print(json.dumps({"id": request["id"], **answer(request)}), flush=True)
            if request["method"] == "shutdown":
                break
