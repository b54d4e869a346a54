package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/choria-io/tokens"
)

// verifyToken checks a provisioned server's token as its network would, by the issuer's public key or the signer's, and that
// the seed beside it is the token's. It prints the claims.
func verifyToken(dir, server string) error {
	f, err := openFolder(dir)
	if err != nil {
		return err
	}
	d, err := f.description()
	if err != nil {
		return err
	}
	token, err := os.ReadFile(f.in("servers", server, "server.jwt"))
	if err != nil {
		return err
	}
	trusted := "signer.public"
	if d.Kind == "issuer" {
		trusted = "issuer.public"
	}
	claims, err := tokens.ParseServerTokenWithKeyfile(string(token), f.in(trusted))
	if err != nil {
		return err
	}
	matches, err := claims.IsMatchingSeedFile(f.in("servers", server, "server.seed"))
	if err != nil {
		return err
	}
	if !matches {
		return fmt.Errorf("the token of %s is not for the seed beside it", server)
	}
	return json.NewEncoder(os.Stdout).Encode(claims)
}
