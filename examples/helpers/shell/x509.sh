#!/bin/sh
# x509 enrolment with nothing but a shell and openssl: signs the server's request with a CA on this machine.
#   helper: /opt/helpers/x509.sh --ca /etc/choria/ca
set -eu

[ "${1:-}" = "--ca" ] || { echo "usage: x509.sh --ca DIRECTORY" >&2; exit 64; }
ca=$2

input=$(cat)
identity=$(printf '%s' "$input" | sed -n 's/^{ *"identity": *"\([^"]*\)".*/\1/p')
csr=$(printf '%s' "$input" | sed -n 's/.*"csr": *{ *"csr": *"\([^"]*\)".*/\1/p')
ssldir=$(printf '%s' "$input" | sed -n 's/.*"csr": *{[^}]*"ssldir": *"\([^"]*\)".*/\1/p')
[ -n "$csr" ] || { echo "no CSR in the input: is features.pki on?" >&2; exit 1; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# The line ends of the PEM text arrive as \n
printf '%b' "$csr" > "$work/csr.pem"
openssl req -in "$work/csr.pem" -noout -verify >/dev/null 2>&1 || { echo "the CSR is not signed with its own key" >&2; exit 1; }

# Names come from here, never from the request: a request may ask for anything.
cat > "$work/extensions" <<EOT
basicConstraints=critical,CA:FALSE
keyUsage=critical,digitalSignature,keyEncipherment
extendedKeyUsage=clientAuth,serverAuth
subjectAltName=DNS:$identity
EOT
# A random serial number, because several helpers run at once and would fight over a counter.
openssl x509 -req -sha256 -days 365 -in "$work/csr.pem" -CA "$ca/ca.pem" -CAkey "$ca/ca.key" \
  -set_serial "0x$(openssl rand -hex 16)" -extfile "$work/extensions" -out "$work/cert.pem" 2> "$work/said" \
  || { cat "$work/said" >&2; exit 1; }

json() { awk '{ printf "%s\\n", $0 }' "$1"; }   # PEM needs no other escapes

cat <<EOT
{
  "certificate": "$(json "$work/cert.pem")",
  "ca": "$(json "$ca/ca.pem")",
  "ssldir": "$ssldir",
  "configuration": {
    "identity": "$identity",
    "plugin.choria.server.provision": "false",
    "plugin.choria.middleware_hosts": "${HELPER_BROKERS:-broker.example.net:4222}",
    "plugin.security.provider": "file",
    "plugin.security.file.certificate": "$ssldir/certificate.pem",
    "plugin.security.file.key": "$ssldir/private.pem",
    "plugin.security.file.ca": "$ssldir/ca.pem",
    "plugin.security.file.cache": "$ssldir/cache"
  }
}
EOT
