package main

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/choria-io/tokens"
	"github.com/nats-io/nats.go"
	"github.com/sirupsen/logrus"
)

// heard is one line of the tap. Payload, sender and caller are filled where the message is a Choria request or reply.
type heard struct {
	Account string `json:"account"`
	Subject string `json:"subject"`
	Reply   string `json:"reply"`
	Data    string `json:"data"`
	Payload string `json:"payload,omitempty"`
	Sender  string `json:"sender,omitempty"`
	Caller  string `json:"caller,omitempty"`
}

// tap listens to everything in every account that has to do with provisioning. A broker with accounts hides provisioned
// servers from the provisioning account, so there it takes two connections.
func tap(ctx context.Context, dir string) error {
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
	out := json.NewEncoder(os.Stdout)
	var one sync.Mutex // the connections deliver at the same time
	say := func(line any) {
		one.Lock()
		defer one.Unlock()
		if out.Encode(line) != nil {
			os.Exit(0) // nobody listens any more
		}
	}
	for account, options := range accounts {
		nc, err := connect(d, options)
		if err != nil {
			return fmt.Errorf("account %s: %w", account, err)
		}
		_, err = nc.Subscribe(">", func(m *nats.Msg) { say(listen(account, m)) })
		if err != nil {
			return err
		}
		if err := nc.Flush(); err != nil {
			return err
		}
	}
	say(map[string]bool{"ready": true})
	<-ctx.Done()
	return nil
}

func tapAccounts(f folder, d description) (map[string][]nats.Option, error) {
	switch d.Kind {
	case "x509":
		certificate := []nats.Option{nats.ClientCert(f.in("tap.pem"), f.in("tap.key")), nats.RootCAs(f.in("ca.pem"))}
		return map[string][]nats.Option{
			"choria":       certificate,
			"provisioning": append(certificate, nats.UserInfo("provisioner", brokerPassword)),
		}, nil
	case "issuer":
		inside, err := withToken(f, "signer", "provisioning")
		if err != nil {
			return nil, err
		}
		outside, err := withToken(f, "tap", "choria")
		if err != nil {
			return nil, err
		}
		return map[string][]nats.Option{
			"choria":       outside,
			"provisioning": append(inside, nats.UserInfo("provisioner", brokerPassword)),
		}, nil
	}
	return map[string][]nats.Option{"all": nil}, nil
}

func withToken(f folder, holder, collective string) ([]nats.Option, error) {
	token, err := os.ReadFile(f.in(holder + ".jwt"))
	if err != nil {
		return nil, err
	}
	log := logrus.NewEntry(logrus.New())
	inbox, jwt, sign, err := tokens.NatsConnectionHelpers(string(token), collective, f.in(holder+".seed"), log)
	if err != nil {
		return nil, err
	}
	return []nats.Option{
		nats.Token(string(token)), nats.UserJWT(jwt, sign), nats.CustomInboxPrefix(inbox),
		nats.Secure(&tls.Config{InsecureSkipVerify: true}),
	}, nil
}

// connect waits for a broker that is still starting.
func connect(d description, options []nats.Option) (*nats.Conn, error) {
	var nc *nats.Conn
	var err error
	for range 300 {
		nc, err = nats.Connect(fmt.Sprintf("nats://localhost:%d", d.Port), options...)
		if err == nil {
			return nc, nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return nil, err
}

func listen(account string, m *nats.Msg) heard {
	h := heard{Account: account, Subject: m.Subject, Reply: m.Reply, Data: string(m.Data)}
	if strings.HasPrefix(m.Subject, "provisioning.") {
		h.Payload, h.Sender, h.Caller = open(m.Data)
	}
	return h
}

// open peels a Choria message of either generation down to its payload; what it cannot read stays empty.
func open(data []byte) (payload, sender, caller string) {
	var transport struct{ Data []byte }
	if json.Unmarshal(data, &transport) != nil {
		return
	}
	var secure struct {
		Message        string // protocol 1
		Request, Reply []byte // protocol 2
	}
	if json.Unmarshal(transport.Data, &secure) != nil {
		return
	}
	inner := append(append([]byte(secure.Message), secure.Request...), secure.Reply...)
	var message struct {
		Message, Sender, Caller string
		Envelope                struct{ SenderID, CallerID string }
	}
	if json.Unmarshal(inner, &message) != nil {
		return
	}
	payload = message.Message
	if secure.Message == "" {
		text, err := base64.StdEncoding.DecodeString(payload)
		if err != nil {
			return
		}
		payload = string(text)
	}
	return payload, message.Sender + message.Envelope.SenderID, message.Caller + message.Envelope.CallerID
}
