package main

import (
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
)

// A folder holds one network: everything its broker, servers, provisioner and tap read and write.
type folder struct{ path string }

// description is network.json: what the other commands need to know about a prepared network.
type description struct {
	Kind        string `json:"kind"`
	Port        int    `json:"port"`
	MonitorPort int    `json:"monitor_port"` // for the provisioner's own /metrics
}

func openFolder(dir string) (folder, error) {
	abs, err := filepath.Abs(dir)
	return folder{abs}, err
}

func (f folder) in(parts ...string) string {
	return filepath.Join(append([]string{f.path}, parts...)...)
}

func (f folder) write(name, data string, mode os.FileMode) error {
	file := f.in(name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	return os.WriteFile(file, []byte(data), mode)
}

// keyPair makes an Ed25519 key and writes it the way Choria keeps one: NAME.seed and NAME.public, hex without a newline.
func (f folder) keyPair(name string) (ed25519.PublicKey, ed25519.PrivateKey, error) {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, nil, err
	}
	if err := f.write(name+".seed", hex.EncodeToString(private.Seed()), 0o600); err != nil {
		return nil, nil, err
	}
	return public, private, f.write(name+".public", hex.EncodeToString(public), 0o644)
}

func (f folder) server(name, token, facts string) error {
	if err := f.write(filepath.Join("servers", name, "provisioning.jwt"), token, 0o644); err != nil {
		return err
	}
	return f.write(filepath.Join("servers", name, "facts.json"), facts, 0o644)
}

func (f folder) describe(d description) error {
	text, err := json.Marshal(d)
	if err != nil {
		return err
	}
	return f.write("network.json", string(text), 0o644)
}

func (f folder) description() (d description, err error) {
	text, err := os.ReadFile(f.in("network.json"))
	if err != nil {
		return d, err
	}
	return d, json.Unmarshal(text, &d)
}

// freePort finds a port below the range that the kernel gives to outgoing connections, so that between this look and the
// broker's start no connection of another test can take it.
func freePort() (int, error) {
	for range 200 {
		port := 12000 + rand.IntN(18000)
		l, err := net.Listen("tcp", fmt.Sprintf(":%d", port))
		if err == nil {
			return port, l.Close()
		}
	}
	return 0, fmt.Errorf("found no free port")
}
