package main

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"time"
)

// An authority is the certificate authority of an x509 network; the helper signs with its files too.
type authority struct {
	certificate *x509.Certificate
	key         *rsa.PrivateKey
}

func newAuthority(f folder) (*authority, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, err
	}
	request := template("Lab CA", nil)
	request.IsCA, request.BasicConstraintsValid = true, true
	request.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageCRLSign
	der, err := x509.CreateCertificate(rand.Reader, request, request, key.Public(), key)
	if err != nil {
		return nil, err
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &authority{certificate, key}, writePair(f, "ca.pem", "ca.key", der, key)
}

// issue writes FILE.pem and FILE.key for somebody who may be client and server.
func (a *authority) issue(f folder, file, name string, hosts []string) (*rsa.PrivateKey, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, template(name, hosts), a.certificate, key.Public(), a.key)
	if err != nil {
		return nil, err
	}
	return key, writePair(f, file+".pem", file+".key", der, key)
}

// selfSigned writes cert.pem and key.pem for a broker whose clients verify nothing.
func selfSigned(f folder) error {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return err
	}
	request := template("localhost", []string{"localhost"})
	der, err := x509.CreateCertificate(rand.Reader, request, request, key.Public(), key)
	if err != nil {
		return err
	}
	return writePair(f, "cert.pem", "key.pem", der, key)
}

func template(name string, hosts []string) *x509.Certificate {
	t := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    time.Now().Add(-time.Minute),
		NotAfter:     time.Now().Add(day),
		DNSNames:     hosts,
		KeyUsage:     x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	for _, host := range hosts {
		if host == "localhost" {
			t.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
		}
	}
	return t
}

func writePair(f folder, certificate, private string, der []byte, key *rsa.PrivateKey) error {
	return firstError(
		f.write(certificate, block("CERTIFICATE", der), 0o644),
		f.write(private, block("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(key)), 0o600),
	)
}

func block(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}
