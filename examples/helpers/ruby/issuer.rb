#!/usr/bin/env ruby
# frozen_string_literal: true

# Issuer networks: the provisioner signs a token for the server, and this helper says what the token permits. Policies for
# both of Choria's authorisation systems go along.
#
#   helper: /opt/helpers/issuer.rb --org choria
require "json"

org = ARGV[ARGV.index("--org") + 1] if ARGV.include?("--org")

server = JSON.parse($stdin.read)
inventory = JSON.parse(server["inventory"]) # JSON inside a string
facts = inventory["facts"] || {}

if server["ed25519_pubkey"].nil?
  # An exit status other than 0 fails this server; it is tried again later.
  warn "no ed25519 key in the input: is features.ed25519 on?"
  exit 1
end

# The claims of the server's provisioning token, verified before they came here.
rack = server.dig("jwt", "extensions", "rack")

collectives = ["choria", facts["role"]].compact
reply = {
  # exp is a date in seconds since 1970, not a duration. Leave it out for the configured validity.
  "server_claims" => {
    "ou" => org || "choria",
    "collectives" => collectives,
    "permissions" => { "submission" => true, "streams" => facts["role"] == "queue" },
    "exp" => Time.now.to_i + 90 * 24 * 3600
  },
  "configuration" => {
    "identity" => server["identity"],
    "collectives" => collectives.join(","),
    "plugin.choria.server.provision" => "false",
    "plugin.choria.middleware_hosts" => ENV.fetch("HELPER_BROKERS", "nats://broker.example.net:4222"),
    "plugin.security.provider" => "choria",
    "plugin.security.choria.token_file" => "#{server["ed25519_pubkey"]["directory"]}/server.jwt",
    "plugin.security.choria.seed_file" => "#{server["ed25519_pubkey"]["directory"]}/server.seed"
  },
  "action_policies" => {
    "rpcutil.policy" => "policy default deny\nallow\t*\tping\t*\t*\n"
  },
  "opa_policies" => {
    "rpcutil.rego" => "package io.choria.mcorpc.authpolicy\n\ndefault allow = false\n\nallow {\n\tinput.action == \"ping\"\n}\n"
  }
}
reply["configuration"]["rack"] = rack if rack

puts JSON.generate(reply)
