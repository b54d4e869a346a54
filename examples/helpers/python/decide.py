#!/usr/bin/env python3
"""The other answers: defer, shutdown and upgrade, decided from a file that stands for a site's inventory system.

    helper: /opt/helpers/decide.py --site /etc/choria/site.json

site.json: {"version": "0.30.2", "servers": {"web1.example.net": {"state": "active"}}}
States: active, hold (not yet), retired (stop it).
"""
import argparse
import json
import sys


def decide(site, server):
    identity = server["identity"]
    inventory = json.loads(server["inventory"])
    known = site["servers"].get(identity)

    if known is None:
        return {"defer": True, "msg": f"{identity} is not in the inventory system"}
    if known["state"] == "hold":
        return {"defer": True, "msg": "on hold: " + known.get("why", "no reason given")}
    if known["state"] == "retired":
        return {"shutdown": True, "msg": "retired machine came up"}

    reply = {
        "configuration": {
            "identity": identity,
            "plugin.choria.server.provision": "false",
            "plugin.choria.middleware_hosts": "nats://broker.example.net:4222",
            "classesfile": "/etc/choria/classes.txt",
        }
    }
    # With features.upgrades on, a server with another version is brought to this one first. It then restarts and comes
    # again, so the rest of the reply counts only when the versions are the same.
    if inventory.get("upgradable") and inventory.get("version") != site["version"]:
        reply["upgrade"] = site["version"]
    return reply


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--site", required=True)
    options = parser.parse_args()
    with open(options.site, encoding="utf-8") as file:
        site = json.load(file)
    reply = decide(site, json.load(sys.stdin))
    if "msg" in reply:
        print(reply["msg"], file=sys.stderr)
    json.dump(reply, sys.stdout)


if __name__ == "__main__":
    main()
