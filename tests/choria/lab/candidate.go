package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/choria-io/go-choria/backoff"
	election "github.com/choria-io/go-choria/providers/election/streams"
	"github.com/nats-io/nats.go"
)

// runCandidate takes part in the provisioners' election as name, with the library and the settings of the Choria
// Provisioner, until it is ended. It prints won and lost.
func runCandidate(ctx context.Context, dir, name string) error {
	f, err := openFolder(dir)
	if err != nil {
		return err
	}
	d, err := f.description()
	if err != nil {
		return err
	}
	accounts, err := tapAccounts(f, d)
	if err != nil {
		return err
	}
	nc, err := connect(d, accounts["provisioning"])
	if err != nil {
		return err
	}
	js, err := nc.JetStream(nats.APIPrefix("choria.streams"))
	if err != nil {
		return err
	}
	bucket, err := js.KeyValue("CHORIA_LEADER_ELECTION")
	for range 300 { // a broker that has just started makes it in a moment
		if err == nil {
			break
		}
		time.Sleep(100 * time.Millisecond)
		bucket, err = js.KeyValue("CHORIA_LEADER_ELECTION")
	}
	if err != nil {
		return err
	}
	member, err := election.NewElection(name, "provisioner", bucket,
		election.OnWon(func() { fmt.Println("won") }),
		election.OnLost(func() { fmt.Println("lost") }),
		election.OnCampaign(func(s election.State) { fmt.Fprintln(os.Stderr, "campaigning as", s) }),
		election.WithBackoff(backoff.TwentySec))
	if err != nil {
		return err
	}
	return member.Start(ctx)
}
