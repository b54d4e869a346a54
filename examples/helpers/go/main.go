// A helper in Go, for issuer networks: what the server's token permits, "not yet" while a machine is being built, and an
// upgrade for old versions. A compiled helper starts in about a millisecond, which is what counts when thousands of
// servers come up at once.
//
//	helper: /opt/helpers/issuer --version 0.30.2
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
)

// What arrives. Leave out what you do not need; unknown keys do no harm.
type server struct {
	Identity  string `json:"identity"`
	Inventory string `json:"inventory"` // JSON inside a string
	Ed25519   *struct {
		PublicKey string `json:"public_key"`
		Directory string `json:"directory"`
	} `json:"ed25519_pubkey"` // nil unless features.ed25519 is on
}

type inventory struct {
	Version    string `json:"version"`
	Upgradable bool   `json:"upgradable"`
	Facts      struct {
		Role  string `json:"role"`
		Build string `json:"build"`
	} `json:"facts"`
}

// What is answered.
type reply struct {
	Defer         bool              `json:"defer,omitempty"`
	Msg           string            `json:"msg,omitempty"`
	ServerClaims  *claims           `json:"server_claims,omitempty"`
	Configuration map[string]string `json:"configuration,omitempty"`
	Upgrade       string            `json:"upgrade,omitempty"`
}

type claims struct {
	OU          string          `json:"ou"`
	Collectives []string        `json:"collectives"`
	Permissions map[string]bool `json:"permissions,omitempty"`
}

func main() {
	wanted := flag.String("version", "", "version of Choria all servers should run")
	flag.Parse()

	answer, err := decide(*wanted)
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(answer)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err) // goes to the provisioner's log, beside the server's name
		os.Exit(1)
	}
}

func decide(wanted string) (*reply, error) {
	var node server
	if err := json.NewDecoder(os.Stdin).Decode(&node); err != nil {
		return nil, fmt.Errorf("input: %w", err)
	}
	var facts inventory
	if err := json.Unmarshal([]byte(node.Inventory), &facts); err != nil {
		return nil, fmt.Errorf("inventory: %w", err)
	}
	if node.Ed25519 == nil {
		return nil, fmt.Errorf("no ed25519 key in the input: is features.ed25519 on?")
	}
	if facts.Facts.Build == "running" {
		return &reply{Defer: true, Msg: "the machine is still being built"}, nil
	}

	role := facts.Facts.Role
	if role == "" {
		role = "none"
	}
	answer := &reply{
		ServerClaims: &claims{
			OU:          "choria",
			Collectives: []string{"choria", role},
			Permissions: map[string]bool{"submission": true},
		},
		Configuration: map[string]string{
			"identity":                          node.Identity,
			"collectives":                       "choria," + role,
			"plugin.choria.server.provision":    "false",
			"plugin.choria.middleware_hosts":    "nats://broker.example.net:4222",
			"plugin.security.provider":          "choria",
			"plugin.security.choria.token_file": node.Ed25519.Directory + "/server.jwt",
			"plugin.security.choria.seed_file":  node.Ed25519.Directory + "/server.seed",
		},
	}
	if facts.Upgradable && wanted != "" && facts.Version != wanted {
		answer.Upgrade = wanted
	}
	return answer, nil
}
