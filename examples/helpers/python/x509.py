#!/usr/bin/env python3
"""x509 enrolment: signs the server's request with a CA on this machine (openssl) and sends action policies along.

    helper: /opt/helpers/x509.py --ca /etc/choria/ca
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile


def openssl(*arguments, text=None):
    done = subprocess.run(["openssl", *arguments], input=text, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        # Standard error reaches the provisioner's log; the exit status fails this server, and it is tried again later.
        sys.exit(f"openssl {arguments[0]}: {done.stderr.strip()}")
    return done.stdout


def sign(ca, identity, csr):
    """The certificate for `identity`. Only the key is taken from the request; every name comes from us."""
    openssl("req", "-noout", "-verify", text=csr)
    with tempfile.TemporaryDirectory() as work:
        extensions = os.path.join(work, "extensions")
        with open(extensions, "w", encoding="utf-8") as out:
            out.write(
                "basicConstraints=critical,CA:FALSE\n"
                "keyUsage=critical,digitalSignature,keyEncipherment\n"
                "extendedKeyUsage=clientAuth,serverAuth\n"
                f"subjectAltName=DNS:{identity}\n"
            )
        return openssl(
            "x509", "-req", "-sha256", "-days", "365",
            "-CA", os.path.join(ca, "ca.pem"), "-CAkey", os.path.join(ca, "ca.key"),
            # Several helpers run at once; a shared counter of serial numbers would be fought over.
            "-set_serial", "0x" + os.urandom(16).hex(), "-extfile", extensions,
            text=csr,
        )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ca", required=True, help="directory with ca.pem and ca.key")
    options = parser.parse_args()

    server = json.load(sys.stdin)
    inventory = json.loads(server["inventory"])  # JSON inside a string: decode it a second time
    if server["csr"] is None:
        sys.exit("no CSR in the input: is features.pki on?")

    identity = server["identity"]  # not the one in the inventory, which the server says of itself
    ssldir = server["csr"]["ssldir"]
    role = inventory.get("facts", {}).get("role", "none")
    with open(os.path.join(options.ca, "ca.pem"), encoding="utf-8") as file:
        ca = file.read()

    reply = {
        "certificate": sign(options.ca, identity, server["csr"]["csr"]),
        "ca": ca,
        "ssldir": ssldir,
        # Every value is a string, numbers and booleans too.
        "configuration": {
            "identity": identity,
            "collectives": f"mcollective,{role}",
            "registerinterval": "300",
            "plugin.choria.server.provision": "false",
            "plugin.choria.middleware_hosts": os.environ.get("HELPER_BROKERS", "broker.example.net:4222"),
            "plugin.security.provider": "file",
            "plugin.security.file.certificate": f"{ssldir}/certificate.pem",
            "plugin.security.file.key": f"{ssldir}/private.pem",
            "plugin.security.file.ca": f"{ssldir}/ca.pem",
            "plugin.security.file.cache": f"{ssldir}/cache",
        },
        # File name on the server, and content.
        "action_policies": {
            "rpcutil.policy": "policy default deny\nallow\t*\tping inventory\t*\t*\n",
        },
    }
    json.dump(reply, sys.stdout)


if __name__ == "__main__":
    main()
