#!/bin/sh
# Makes a small certificate authority for the x509 samples: ca.pem and ca.key in the directory named.
# For trying things out. A real site has a CA already; its helper asks that one.
set -eu
dir=${1:?"usage: make-ca.sh DIRECTORY"}
mkdir -p "$dir"
umask 077
openssl req -x509 -newkey rsa:2048 -nodes -sha256 -days 3650 -subj "/CN=Sample Choria CA" \
  -addext "basicConstraints=critical,CA:TRUE,pathlen:0" -addext "keyUsage=critical,keyCertSign,cRLSign" \
  -keyout "$dir/ca.key" -out "$dir/ca.pem" 2>/dev/null
