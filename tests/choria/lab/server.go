package main

import (
	"context"
	"os"
	"path/filepath"
	"sync"

	"github.com/choria-io/go-choria/build"
	"github.com/choria-io/go-choria/choria"
	"github.com/choria-io/go-choria/config"
	"github.com/choria-io/go-choria/plugin"
	agents "github.com/choria-io/go-choria/providers/agent/mcorpc/golang"
	"github.com/choria-io/go-choria/providers/agent/mcorpc/golang/provision"
	"github.com/choria-io/go-choria/providers/provtarget"
	"github.com/choria-io/go-choria/server"
	"github.com/choria-io/tokens"
	"github.com/sirupsen/logrus"
)

// runServer does what the command line of Choria does to run a server from DIR/server.cfg, on a machine whose name is that
// of the folder. One server a process: the provisioning agent keeps its keys and its lock in package variables, and its
// restart action replaces the process by a fresh one with the same arguments.
func runServer(ctx context.Context, dir string, disableTLS bool) error {
	configFile := filepath.Join(dir, "server.cfg")
	build.ProvisionModeDefault = "true"
	build.ProvisionJWTFile = filepath.Join(dir, "provisioning.jwt")
	build.ProvisionFacts = filepath.Join(dir, "facts.json")
	if version := os.Getenv("LAB_VERSION"); version != "" {
		build.Version = version // an upgrade put this one in the other's place
	}
	if err := registerAgents(); err != nil {
		return err
	}

	cfg, err := serverConfig(ctx, configFile)
	if err != nil {
		return err
	}
	if !cfg.HasOption("identity") {
		cfg.Identity = filepath.Base(dir)
	}
	cfg.OverrideCertname = cfg.Identity
	cfg.ApplyBuildSettings(&build.Info{})
	cfg.DisableTLS = disableTLS
	cfg.CustomLogger = logrus.New()

	fw, err := choria.NewWithConfig(cfg)
	if err != nil {
		return err
	}
	fw.ConfigureProvisioning(ctx)
	srv, err := server.NewInstance(fw)
	if err != nil {
		return err
	}
	wg := &sync.WaitGroup{}
	wg.Add(1)
	if err := srv.Run(ctx, wg); err != nil {
		return err
	}
	<-ctx.Done()
	wg.Wait()
	return nil
}

func registerAgents() error {
	if err := plugin.Register("golangmco", agents.ChoriaPlugin()); err != nil {
		return err
	}
	return plugin.Register("choria_provision", provision.ChoriaPlugin())
}

func serverConfig(ctx context.Context, file string) (*config.Config, error) {
	if _, err := os.Stat(file); err == nil {
		cfg, err := config.NewSystemConfig(file, true)
		if err != nil {
			return nil, err
		}
		provtarget.Configure(ctx, cfg, logrus.WithField("component", "provtarget"))
		if !wantsProvisioning(cfg) {
			return cfg, nil
		}
		os.Remove(cfg.Choria.ChoriaSecuritySeedFile)
		os.Remove(cfg.Choria.ChoriaSecurityTokenFile)
	}
	cfg, err := config.NewDefaultSystemConfig(true)
	if err != nil {
		return nil, err
	}
	cfg.ConfigFile = file
	cfg.Choria.SecurityProvider = "file"
	cfg.DisableSecurityProviderVerify = true
	cfg.LogFile = ""
	cfg.LogLevel = "info"
	return cfg, nil
}

// wantsProvisioning: a token that is unusable with the seed on disk asks for it even where the configuration does not.
func wantsProvisioning(cfg *config.Config) bool {
	if cfg.Choria.SecurityProvider == "choria" {
		token, err := tokens.ParseServerTokenFileUnverified(cfg.Choria.ChoriaSecurityTokenFile)
		if err != nil || token.IsExpired() {
			return true
		}
		if matches, err := token.IsMatchingSeedFile(cfg.Choria.ChoriaSecuritySeedFile); err != nil || !matches {
			return true
		}
	}
	if cfg.HasOption("plugin.choria.server.provision") && !cfg.Choria.Provision {
		return false
	}
	return build.ProvisionDefault()
}
