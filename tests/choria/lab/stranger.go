package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
)

const strangerID = "stranger.example.net"

// takeLock calls a locked action of a server's provisioning agent as somebody who does not even know the token: the lock is
// taken before the token is looked at and nobody else gets it for two minutes. It prints the server's answer.
func takeLock(dir, server string) error {
	f, err := openFolder(dir)
	if err != nil {
		return err
	}
	d, err := f.description()
	if err != nil {
		return err
	}
	nc, err := connect(d, nil)
	if err != nil {
		return err
	}
	defer nc.Close()
	id := fmt.Sprintf("%032x", time.Now().UnixNano())
	reply := "provisioning.reply.stranger." + id
	answers, err := nc.SubscribeSync(reply)
	if err != nil {
		return err
	}
	request, err := lockRequest(id, reply)
	if err != nil {
		return err
	}
	if err := nc.PublishMsg(&nats.Msg{Subject: "provisioning.node." + server, Data: request}); err != nil {
		return err
	}
	answer, err := answers.NextMsg(10 * time.Second)
	if err != nil {
		return fmt.Errorf("no answer of %s: %w", server, err)
	}
	payload, _, _ := open(answer.Data)
	fmt.Println(payload)
	return nil
}

// lockRequest is an unsigned request of protocol 1.
func lockRequest(id, reply string) ([]byte, error) {
	type object = map[string]any
	none := []any{}
	request, err := json.Marshal(object{
		"protocol": "choria:request:1",
		"message":  `{"agent":"choria_provision","action":"jwt","data":{"token":"guess"}}`,
		"envelope": object{
			"requestid": id, "senderid": strangerID, "callerid": "choria=" + strangerID, "collective": "provisioning",
			"agent": "choria_provision", "ttl": 60, "time": time.Now().Unix(),
			"filter": object{"fact": none, "cf_class": none, "agent": []string{"choria_provision"}, "identity": none, "compound": none},
		},
	})
	if err != nil {
		return nil, err
	}
	secure, err := json.Marshal(object{
		"protocol": "choria:secure:request:1", "message": string(request), "signature": "insecure", "pubcert": "insecure",
	})
	if err != nil {
		return nil, err
	}
	return json.Marshal(object{
		"protocol": "choria:transport:1", "data": base64.StdEncoding.EncodeToString(secure),
		"headers": object{"reply-to": reply, "mc_sender": strangerID},
	})
}
