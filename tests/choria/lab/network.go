package main

import (
	"crypto/ed25519"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/choria-io/tokens"
	"github.com/golang-jwt/jwt/v5"
)

const (
	day            = 24 * time.Hour
	nodeToken      = "s3cret"
	brokerPassword = "provSecret"
	issuerText     = "lab"
)

// prepareNetwork makes one of the three kinds of network a provisioner meets, to be run from DIR.
func prepareNetwork(kind, dir string, servers []string) error {
	f, err := openFolder(dir)
	if err != nil {
		return err
	}
	d := description{Kind: kind}
	if d.Port, err = freePort(); err != nil {
		return err
	}
	if d.MonitorPort, err = freePort(); err != nil {
		return err
	}
	var token string
	facts := `{"role":"web","cores":2}`
	switch kind {
	case "plain":
		token, err = preparePlain(f, d)
	case "x509":
		facts = `{"role":"web"}` // as in the recorded network of this kind
		token, err = prepareX509(f, d)
	case "issuer":
		token, err = prepareIssuer(f, d)
	default:
		err = fmt.Errorf("unknown kind of network: %s", kind)
	}
	if err != nil {
		return err
	}
	for _, name := range servers {
		if err := f.server(name, token, facts); err != nil {
			return err
		}
	}
	return f.describe(d)
}

// preparePlain: nats-server, protocol 1 without signatures. The signer's key vouches for provisioning.jwt and signs server
// tokens, which nobody asks for in such a network but the ed25519 feature makes.
func preparePlain(f folder, d description) (string, error) {
	_, signer, err := f.keyPair("signer")
	if err != nil {
		return "", err
	}
	if err := selfSigned(f); err != nil {
		return "", err
	}
	url := fmt.Sprintf("nats://127.0.0.1:%d", d.Port)
	err = firstError(
		f.write("choria.cfg", lines(
			"identity = provisioner.example.net",
			"plugin.choria.middleware_hosts = "+url,
			"plugin.choria.use_srv = false",
			"plugin.security.provider = file",
		), 0o644),
		f.provisionerConfig(d,
			"choria_insecure: true",
			"jwt_verify_cert: "+f.in("signer.public"),
			"jwt_signing_key: "+f.in("signer.seed"),
			"features:",
			"  jwt: true",
			"  ed25519: true",
		),
	)
	if err != nil {
		return "", err
	}
	claims, err := provisioningClaims(url)
	if err != nil {
		return "", err
	}
	claims.Extensions = tokens.MapClaims{"rack": "r1"}
	claims.AllowUpdate = true
	return tokens.SignToken(claims, signer)
}

// prepareX509: the Choria broker with certificates. provisioning.jwt is signed with an RSA key of its own.
func prepareX509(f folder, d description) (string, error) {
	ca, err := newAuthority(f)
	if err != nil {
		return "", err
	}
	signer, err := ca.issue(f, "jwt-signer", "provisioning signer", nil)
	if err != nil {
		return "", err
	}
	for _, holder := range []struct{ file, name string }{
		{"broker", "localhost"}, {"provisioner", "provisioner.mcollective"}, {"tap", "tap.mcollective"},
	} {
		if _, err := ca.issue(f, holder.file, holder.name, []string{holder.name}); err != nil {
			return "", err
		}
	}
	url := fmt.Sprintf("nats://localhost:%d", d.Port)
	err = firstError(
		f.brokerConfig(d,
			"plugin.choria.network.provisioning.signer_cert = "+f.in("jwt-signer.pem"),
			"plugin.security.provider = file",
			"plugin.security.file.certificate = "+f.in("broker.pem"),
			"plugin.security.file.key = "+f.in("broker.key"),
			"plugin.security.file.ca = "+f.in("ca.pem"),
		),
		f.write("choria.cfg", lines(
			"identity = provisioner.mcollective",
			"plugin.choria.middleware_hosts = "+url,
			"plugin.choria.use_srv = false",
			"plugin.security.provider = file",
			"plugin.security.file.certificate = "+f.in("provisioner.pem"),
			"plugin.security.file.key = "+f.in("provisioner.key"),
			"plugin.security.file.ca = "+f.in("ca.pem"),
		), 0o644),
		f.provisionerConfig(d,
			"jwt_verify_cert: "+f.in("jwt-signer.pem"),
			"broker_provisioning_password: "+brokerPassword,
			"features:",
			"  jwt: true",
			"  pki: true",
		),
	)
	if err != nil {
		return "", err
	}
	claims, err := provisioningClaims(url)
	if err != nil {
		return "", err
	}
	claims.Extensions = tokens.MapClaims{"rack": "r1"}
	return tokens.SignToken(claims, signer)
}

// prepareIssuer: the Choria broker trusting one Organization Issuer, protocol 2, a provisioner that signs server tokens
// with a chain of trust to the issuer.
func prepareIssuer(f folder, d description) (string, error) {
	issuerPublic, issuer, err := f.keyPair("issuer")
	if err != nil {
		return "", err
	}
	if err := selfSigned(f); err != nil {
		return "", err
	}
	if err := brokerToken(f, issuer); err != nil {
		return "", err
	}
	signer, _, err := f.keyPair("signer")
	if err != nil {
		return "", err
	}
	listener, _, err := f.keyPair("tap")
	if err != nil {
		return "", err
	}
	all := &tokens.ClientPermissions{ServerProvisioner: true, StreamsUser: true, ElectionUser: true}
	err = firstError(
		clientToken(f, "signer", "choria=provisioner_signer", signer, issuer, all),
		// The same login before somebody remembered to let it provision.
		clientToken(f, "powerless", "choria=provisioner_signer", signer, issuer, &tokens.ClientPermissions{StreamsUser: true}),
		clientToken(f, "tap", "choria=tap", listener, issuer, &tokens.ClientPermissions{OrgAdmin: true}),
	)
	if err != nil {
		return "", err
	}
	url := fmt.Sprintf("nats://localhost:%d", d.Port)
	err = firstError(
		f.brokerConfig(d,
			"plugin.security.provider = choria",
			"plugin.security.choria.certificate = "+f.in("cert.pem"),
			"plugin.security.choria.key = "+f.in("key.pem"),
			"plugin.security.choria.seed_file = "+f.in("broker.seed"),
			"plugin.security.choria.token_file = "+f.in("broker.jwt"),
			"plugin.security.issuer.names = choria",
			"plugin.security.issuer.choria.public = "+hex.EncodeToString(issuerPublic),
		),
		f.write("choria.cfg", lines(
			"identity = provisioner_signer",
			"plugin.choria.middleware_hosts = "+url,
			"plugin.choria.use_srv = false",
			"plugin.security.provider = choria",
			"plugin.security.choria.token_file = "+f.in("signer.jwt"),
			"plugin.security.choria.seed_file = "+f.in("signer.seed"),
		), 0o644),
		f.provisionerConfig(d,
			"jwt_verify_cert: "+hex.EncodeToString(issuerPublic),
			"jwt_signing_key: "+f.in("signer.seed"),
			"jwt_signing_token: "+f.in("signer.jwt"),
			"broker_provisioning_password: "+brokerPassword,
			"features:",
			"  jwt: true",
			"  ed25519: true",
		),
	)
	if err != nil {
		return "", err
	}
	claims, err := provisioningClaims(url)
	if err != nil {
		return "", err
	}
	claims.ProtoV2 = true
	return tokens.SignToken(claims, issuer)
}

// brokerConfig: the stream replicas are pinned because a broker that has to count its peers first waits up to a minute
// before it creates its streams.
func (f folder) brokerConfig(d description, security ...string) error {
	common := []string{
		"identity = localhost",
		"loglevel = info",
		"plugin.choria.use_srv = false",
		"plugin.choria.broker_network = true",
		"plugin.choria.network.listen_address = 127.0.0.1",
		fmt.Sprintf("plugin.choria.network.client_port = %d", d.Port),
		"plugin.choria.network.provisioning.client_password = " + brokerPassword,
		"plugin.choria.network.tls_timeout = 10s", // the default of 2 s is short on a busy machine
		"plugin.choria.network.auth_timeout = 10s",
		"plugin.choria.network.system.user = system",
		"plugin.choria.network.system.password = system",
		"plugin.choria.network.stream.store = " + f.in("streams"),
		"plugin.choria.network.stream.leader_election_ttl = 8s",
	}
	for _, stream := range []string{"event", "machine", "advisory", "executor", "leader_election"} {
		common = append(common, "plugin.choria.network.stream."+stream+"_replicas = 1")
	}
	for _, stream := range []string{"event", "machine", "advisory", "executor"} {
		common = append(common, "plugin.choria.network.stream."+stream+"_retention = 1h")
	}
	return f.write("broker.conf", lines(append(common, security...)...), 0o644)
}

// provisionerConfig writes provisioner.yaml. The helper is a program the test puts into the folder.
func (f folder) provisionerConfig(d description, kind ...string) error {
	common := []string{
		"workers: 4",
		"interval: 1m",
		"logfile: stdout",
		"loglevel: debug",
		"site: lab",
		"token: " + nodeToken,
		"helper: " + f.in("helper"),
		fmt.Sprintf("monitor_port: %d", d.MonitorPort),
	}
	return f.write("provisioner.yaml", lines(append(common, kind...)...), 0o600)
}

func provisioningClaims(url string) (*tokens.ProvisioningClaims, error) {
	return tokens.NewProvisioningClaims(false, true, nodeToken, "", "", []string{url}, "", "", "", "choria", issuerText, day)
}

func brokerToken(f folder, issuer ed25519.PrivateKey) error {
	public, _, err := f.keyPair("broker")
	if err != nil {
		return err
	}
	claims, err := tokens.NewServerClaims("localhost", []string{"choria"}, "choria", nil, nil, public, "", day)
	if err != nil {
		return err
	}
	return writeToken(f, "broker", claims, issuer)
}

func clientToken(f folder, file, caller string, public ed25519.PublicKey, issuer ed25519.PrivateKey, may *tokens.ClientPermissions) error {
	claims, err := tokens.NewClientIDClaims(caller, nil, "choria", nil, "", "", day, may, public)
	if err != nil {
		return err
	}
	if err := claims.AddOrgIssuerData(issuer); err != nil {
		return err
	}
	return writeToken(f, file, claims, issuer)
}

func writeToken(f folder, name string, claims jwt.Claims, key ed25519.PrivateKey) error {
	token, err := tokens.SignToken(claims, key)
	if err != nil {
		return err
	}
	return f.write(name+".jwt", token, 0o600)
}

func lines(l ...string) string { return strings.Join(l, "\n") + "\n" }

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
