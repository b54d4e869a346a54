package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/choria-io/go-choria/broker/network"
	"github.com/choria-io/go-choria/choria"
	"github.com/choria-io/go-choria/config"
	natsd "github.com/nats-io/nats-server/v2/server"
	"github.com/sirupsen/logrus"
)

func runBroker(ctx context.Context, dir string) error {
	f, err := openFolder(dir)
	if err != nil {
		return err
	}
	d, err := f.description()
	if err != nil {
		return err
	}
	if d.Kind == "plain" {
		return runNats(ctx, f, d)
	}
	return runChoria(ctx, f.in("broker.conf"))
}

// runChoria is a Choria broker with this configuration file.
func runChoria(ctx context.Context, file string) error {
	cfg, err := config.NewSystemConfig(file, true)
	if err != nil {
		return err
	}
	cfg.CustomLogger = logrus.New()
	fw, err := choria.NewWithConfig(cfg)
	if err != nil {
		return err
	}
	srv, err := network.NewServer(fw, fw.BuildInfo(), false)
	if err != nil {
		return err
	}
	wg := &sync.WaitGroup{}
	wg.Add(1)
	srv.Start(ctx, wg)
	wg.Wait()
	return nil
}

// runNats is a plain nats-server. Servers in provisioning mode insist on TLS, a provisioner with choria_insecure speaks
// none: the server allows both.
func runNats(ctx context.Context, f folder, d description) error {
	pair, err := tls.LoadX509KeyPair(f.in("cert.pem"), f.in("key.pem"))
	if err != nil {
		return err
	}
	srv, err := natsd.NewServer(&natsd.Options{
		ServerName:  "plain",
		Host:        "127.0.0.1",
		Port:        d.Port,
		NoSigs:      true,
		TLSConfig:   &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12},
		TLS:         true,
		AllowNonTLS: true,
		TLSTimeout:  10,
	})
	if err != nil {
		return err
	}
	srv.ConfigureLogger()
	go srv.Start()
	if !srv.ReadyForConnections(30 * time.Second) {
		return fmt.Errorf("nats-server on port %d did not become ready", d.Port)
	}
	fmt.Fprintln(os.Stderr, "nats-server is ready")
	<-ctx.Done()
	srv.Shutdown()
	return nil
}
