// Command lab runs the real neighbours of a provisioner for the tests in this folder: the Choria Network Broker, a plain
// nats-server and Choria Servers in provisioning mode, all on one free loopback port and inside one folder per network.
// It also makes what such a network needs (tokens, keys, a certificate authority, configuration files), and it can listen.
//
// Every long-running command ends when its standard input is closed, so nothing outlives the test that started it, however
// that test ends.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

const usage = `lab network plain|x509|issuer DIR NAME…   prepare a network in DIR with a server folder for every NAME
lab broker DIR                            run the network's broker
lab choria-broker FILE                    run a Choria broker with this configuration, for measurements
lab server [--disable-tls] DIR/servers/NAME   run a server: provisioning mode until server.cfg says otherwise
lab tap DIR                               print what passes, a JSON object a line, the first being {"ready":true}
lab stranger DIR NAME                     take NAME's provisioning lock as somebody else (plain networks)
lab candidate DIR NAME                    take part in the provisioners' election as NAME, print won and lost
lab verify DIR NAME                       check NAME's server token and seed, print its claims`

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "lab:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) < 2 {
		return fmt.Errorf("too few arguments\n%s", usage)
	}
	if os.Getenv("USER") == "" { // the framework refuses to start without one
		os.Setenv("USER", "lab")
	}
	command, args := args[0], args[1:]
	switch {
	case command == "network" && len(args) >= 3:
		return prepareNetwork(args[0], args[1], args[2:])
	case command == "broker":
		return runBroker(untilOrphaned(), args[0])
	case command == "choria-broker":
		ctx, _ := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
		return runChoria(ctx, args[0])
	case command == "server" && args[0] == "--disable-tls" && len(args) == 2:
		return runServer(untilOrphaned(), args[1], true)
	case command == "server":
		return runServer(untilOrphaned(), args[0], false)
	case command == "tap":
		return tap(untilOrphaned(), args[0])
	case command == "stranger" && len(args) == 2:
		return takeLock(args[0], args[1])
	case command == "candidate" && len(args) == 2:
		return runCandidate(untilOrphaned(), args[0], args[1])
	case command == "verify" && len(args) == 2:
		return verifyToken(args[0], args[1])
	}
	return fmt.Errorf("unknown command or wrong arguments: %s\n%s", command, usage)
}

// untilOrphaned is done on a signal. When standard input closes, the process goes at once: whoever started it is gone, and a
// polite goodbye would only keep the broker's port busy.
func untilOrphaned() context.Context {
	ctx, _ := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	go func() {
		io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	return ctx
}
