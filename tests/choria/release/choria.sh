#!/bin/sh
# The "next version" that the upgrade test serves as choria.bz2. After a change here: bzip2 -9 < choria.sh > choria.bz2,
# and the new sha256 of this file into release.json.
LAB_VERSION=0.99.0 exec "$LAB_PROGRAM" "$@"
