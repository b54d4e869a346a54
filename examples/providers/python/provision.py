#!/usr/bin/env python3
"""The site's helper as a provider: decides what each server becomes. `helper_protocol: provider` runs it; docs/helpers.md."""
import json
import sys

import provider_kit
from provider_kit import Failure

# What a helper is given. `any` passes on unread what need not be checked.
SCHEMA = {
    "name": "site-helper", "version": "1.0.0", "protocol": "1",
    "config": {"brokers": {"type": "string", "default": "nats://broker.example.net:4222"}},
    "actions": {"provision": {
        "description": "decide what a server becomes",
        "attrs": {"identity": {"type": "string", "required": True}, "inventory": {"type": "string", "required": True},
                  "csr": {"type": "any"}, "ed25519_pubkey": {"type": "any"}, "jwt": {"type": "any"}},
        "outputs": {"type": "any"}, "x_idempotent": True}}}
config = {}


def provision(server):
    facts = json.loads(server["inventory"]).get("facts") or {}
    if facts.get("broken"):
        raise Failure("conflict", "the machine says that it is broken")
    if not server["identity"].endswith(".example.net"):
        return {"defer": True, "msg": "not one of ours"}
    role = facts.get("role", "plain")
    print("%s becomes %s" % (server["identity"], role), file=sys.stderr)
    return {"configuration": {
        "identity": server["identity"],
        "collectives": "mcollective," + role,
        "registerinterval": "300",
        "plugin.choria.server.provision": "false",
        "plugin.choria.middleware_hosts": config.get("brokers", "")}}


if __name__ == "__main__":
    provider_kit.run(SCHEMA, {"provision": provision}, config.update)
