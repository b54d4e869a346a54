// Command kv-lab serves HashiCorp Vault's own core with its key-value engine and the login by AppRole, unsealed and in memory,
// on free ports of loopback. It is a peer for tests: it forgets everything, and its keys are printed.
//
//	kv-lab [CERTIFICATE KEY]    with files in PEM also over TLS
//
// The first line on standard output is {"address":…,"tls":…,"token":…,"unseal":…}: where it listens, its root token and the key
// it is unsealed with. Everything else, from mounts to sealing, is asked for over its own interface. It ends when its standard
// input is closed, so that it does not outlive whoever started it.
package main

import (
	"context"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"

	"github.com/hashicorp/go-hclog"
	vaulthttp "github.com/hashicorp/vault/http"
	"github.com/hashicorp/vault/sdk/physical/inmem"
	"github.com/hashicorp/vault/vault"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "kv-lab:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	core, opened, err := start()
	if err != nil {
		return err
	}
	ready := map[string]string{
		"address": "http://" + plain.Addr().String(),
		"token":   opened.RootToken,
		"unseal":  hex.EncodeToString(opened.SecretShares[0]),
	}
	listeners := []net.Listener{plain}
	if len(args) > 0 {
		secure, err := secured(args)
		if err != nil {
			return err
		}
		_, port, err := net.SplitHostPort(secure.Addr().String())
		if err != nil {
			return err
		}
		ready["tls"] = "https://localhost:" + port
		listeners = append(listeners, secure)
	}
	ended := make(chan error, 1)
	handler := vaulthttp.Handler.Handler(&vault.HandlerProperties{Core: core})
	for _, listener := range listeners {
		go func() { ended <- http.Serve(listener, handler) }()
	}
	go func() {
		_, err := io.Copy(io.Discard, os.Stdin)
		ended <- err
	}()
	if err := json.NewEncoder(os.Stdout).Encode(ready); err != nil {
		return err
	}
	return <-ended
}

// secured binds another port of loopback for TLS with this certificate.
func secured(args []string) (net.Listener, error) {
	if len(args) != 2 {
		return nil, errors.New("usage: kv-lab [CERTIFICATE KEY]")
	}
	pair, err := tls.LoadX509KeyPair(args[0], args[1])
	if err != nil {
		return nil, err
	}
	return tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{pair}})
}

// start makes a core with nothing in it, and unseals it.
func start() (*vault.Core, *vault.InitResult, error) {
	logger := hclog.New(&hclog.LoggerOptions{Output: os.Stderr, Level: hclog.Warn})
	memory, err := inmem.NewInmem(nil, logger)
	if err != nil {
		return nil, nil, err
	}
	core, err := vault.NewCore(&vault.CoreConfig{
		Physical:           memory,
		Logger:             logger,
		DisableMlock:       true,
		LogicalBackends:    engines,
		CredentialBackends: logins,
		BuiltinRegistry:    parts{},
	})
	if err != nil {
		return nil, nil, err
	}
	opened, err := core.Initialize(context.Background(), &vault.InitParams{
		BarrierConfig: &vault.SealConfig{SecretShares: 1, SecretThreshold: 1},
	})
	if err != nil {
		return nil, nil, err
	}
	if _, err := core.Unseal(opened.SecretShares[0]); err != nil {
		return nil, nil, err
	}
	return core, opened, nil
}
