// A provider that hands out names and takes them back. It declares nothing beyond the common protocol.
package main

import (
	"encoding/json"
	"fmt"
	"os"
)

const schema = `{"name":"names","version":"1.0.0","protocol":"1","config":{"prefix":{"type":"string","default":"srv-"}},"actions":{"reserve":{"description":"reserve a name","attrs":{"role":{"type":"string","required":true}},
"outputs":{"type":"object({name=string})"},"x_returns_undo":true},"release":{"attrs":{"name":{"type":"string","required":true}}}}}`

type object = map[string]any

func fail(code, message string) object {
	return object{"error": object{"code": code, "message": message}}
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "schema" {
		fmt.Println(schema)
		return
	}
	prefix, taken := any(""), map[any]bool{}
	method, in, out := "", json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for method != "shutdown" {
		var call struct { // members are found by name, whatever their case
			ID     json.RawMessage
			Method string
			Params object
		}
		if in.Decode(&call) != nil {
			return // the host has gone
		}
		attrs, _ := call.Params["attrs"].(object)
		name, answer := attrs["name"], object{"result": object{}}
		switch method = call.Method; {
		case method == "describe":
			answer["result"] = object{"schema": json.RawMessage(schema)}
		case method == "configure":
			prefix = call.Params["config"].(object)["prefix"]
		case method == "execute" && call.Params["action"] == "reserve":
			name = fmt.Sprintf("%v%v-%d", prefix, attrs["role"], len(taken)+1)
			taken[name] = true
			undo := object{"action": "release", "attrs": object{"name": name}}
			answer["result"] = object{"outputs": object{"name": name}, "undo": undo}
		case method == "execute" && call.Params["action"] == "release" && taken[name]:
			delete(taken, name)
		case method == "execute" && call.Params["action"] == "release":
			answer = fail("not_found", fmt.Sprint("no such name: ", name))
		case method == "execute":
			answer = fail("unknown_action", fmt.Sprint("no such action: ", call.Params["action"]))
		case method != "shutdown":
			answer = fail("unknown_method", "no such method: "+method)
		}
		answer["id"] = call.ID
		out.Encode(answer)
	}
}
