#!/usr/bin/env python3
"""A provider of made-up DNS records, kept in a JSON file."""
import json
import os
import sys

import provider_kit
from provider_kit import Failure

SCHEMA = {
    "name": "dns", "version": "1.0.0", "protocol": "1",
    "config": {"file": {"type": "string", "required": True, "description": "where the records are kept"}},
    "actions": {
        "record_create": {
            "description": "create one record",
            "attrs": {"zone": {"type": "string", "required": True}, "name": {"type": "string", "required": True},
                      "ttl": {"type": "number", "default": 300}},
            "outputs": {"type": "object({fqdn=string})"}, "x_returns_undo": True},
        "record_delete": {"attrs": {"fqdn": {"type": "string", "required": True}}, "x_idempotent": True}}}
config = {}


def records(change=lambda records: None):
    path = config["file"]
    found = json.load(open(path)) if os.path.exists(path) else {}
    change(found)
    with open(path + ".new", "w") as file:
        json.dump(found, file)
    os.replace(path + ".new", path)
    return found


def record_create(attrs):
    if attrs["ttl"] < 30:
        raise Failure("invalid_attrs", "ttl below 30")
    fqdn = attrs["name"] + "." + attrs["zone"]
    if fqdn in records():
        raise Failure("conflict", fqdn + " is there already")
    records(lambda all: all.update({fqdn: attrs["ttl"]}))
    print("created " + fqdn, file=sys.stderr)
    return {"fqdn": fqdn}, ("record_delete", {"fqdn": fqdn})


def record_delete(attrs):
    if attrs["fqdn"] not in records():
        raise Failure("not_found", attrs["fqdn"] + " is not there")
    records(lambda all: all.pop(attrs["fqdn"]))


if __name__ == "__main__":
    provider_kit.run(SCHEMA, {"record_create": record_create, "record_delete": record_delete}, config.update)
