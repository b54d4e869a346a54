#!/bin/sh
# The smallest useful helper, for a plain network: a configuration, and "not yet" for machines that have no role.
# Shell has no JSON, so this one only looks for two plain words in its input. For anything more take another language, or jq.
set -eu

input=$(cat)

# The first "identity" is the top-level one. Names are plain words, so nothing in them is escaped.
identity=$(printf '%s' "$input" | sed -n 's/^{ *"identity": *"\([^"]*\)".*/\1/p')

# The inventory is JSON inside a JSON string, so its quotes arrive as \"
role=$(printf '%s' "$input" | sed -n 's/.*\\"role\\": *\\"\([a-z0-9_-]*\)\\".*/\1/p')

if [ -z "$role" ]; then
  # What goes to standard error ends up in the provisioner's log, beside this server's name.
  echo "no role fact on $identity" >&2
  echo '{"defer": true, "msg": "the machine has no role yet"}'
  exit 0
fi

# Without plugin.choria.server.provision = false the server comes back to be provisioned, for ever.
cat <<EOT
{
  "configuration": {
    "identity": "$identity",
    "plugin.choria.server.provision": "false",
    "plugin.choria.middleware_hosts": "${HELPER_BROKERS:-nats://broker.example.net:4222}",
    "collectives": "mcollective,$role",
    "registerinterval": "300",
    "loglevel": "warn"
  }
}
EOT
