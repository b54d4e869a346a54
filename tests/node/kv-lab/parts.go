package main

import (
	kv "github.com/hashicorp/vault-plugin-secrets-kv"
	"github.com/hashicorp/vault/builtin/credential/approle"
	"github.com/hashicorp/vault/sdk/helper/consts"
	"github.com/hashicorp/vault/sdk/logical"
)

// parts is what the core has beside itself, in the form of its registry of plug-ins.
type parts struct{}

var engines = map[string]logical.Factory{"kv": kv.Factory}
var logins = map[string]logical.Factory{"approle": approle.Factory}

func of(kind consts.PluginType) map[string]logical.Factory {
	switch kind {
	case consts.PluginTypeSecrets:
		return engines
	case consts.PluginTypeCredential:
		return logins
	}
	return nil
}

// Get finds what makes a part.
func (parts) Get(name string, kind consts.PluginType) (func() (any, error), bool) {
	factory, is := of(kind)[name]
	return func() (any, error) { return factory, nil }, is
}

// Contains is true for a part that is there.
func (parts) Contains(name string, kind consts.PluginType) bool {
	_, is := of(kind)[name]
	return is
}

// Keys lists the parts of a kind.
func (parts) Keys(kind consts.PluginType) []string {
	var names []string
	for name := range of(kind) {
		names = append(names, name)
	}
	return names
}

// DeprecationStatus is that of every part: none is deprecated.
func (p parts) DeprecationStatus(name string, kind consts.PluginType) (consts.DeprecationStatus, bool) {
	return consts.Supported, p.Contains(name, kind)
}

// IsBuiltinEntPlugin is true for no part.
func (parts) IsBuiltinEntPlugin(string, consts.PluginType) bool { return false }
