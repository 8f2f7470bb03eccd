#!/bin/sh
# Prints the path of the redis-server 8.0 that the differential tests compare with, and builds it first where it is
# missing: Debian's source archive of the version below, checked by its hash. Needs curl (or wget), make, a C compiler.
#
#   PERIGEE_REDIS=$(scripts/reference.sh)
#
# Distributions ship older versions, whose replies differ in a hundred places. REFERENCE_DIR: where it is kept, by
# default under the target directory.
set -eu
cd "$(dirname "$0")/.."

VERSION=8.0.2
SHA256=caf3c0069f06fc84c5153bd2a348b204c578de80490c73857bee01d9b5d7401f
FILE=pool/main/r/redis/redis_$VERSION.orig.tar.gz
DIR=${REFERENCE_DIR:-${CARGO_TARGET_DIR:-target}/reference}
SERVER=$DIR/redis-$VERSION/src/redis-server

if [ ! -x "$SERVER" ]; then
    mkdir -p "$DIR"
    ARCHIVE=$DIR/redis-$VERSION.tar.gz
    # Debian's own host, else the mirrors that apt here knows; through apt's proxy, where it has one.
    eval "$(apt-config shell http_proxy Acquire::http::Proxy 2>/dev/null || true)"
    [ -z "${http_proxy:-}" ] || export http_proxy
    MIRRORS=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null |
        sed -n 's/^URIs: *\([^ ]*\).*/\1/p; s/^deb .*\(http[^ ]*\).*/\1/p' | sort -u)
    for mirror in http://deb.debian.org/debian $MIRRORS; do
        if command -v curl >/dev/null; then
            curl -fsSL --retry 2 -o "$ARCHIVE" "$mirror/$FILE" && break
        else
            wget -q -O "$ARCHIVE" "$mirror/$FILE" && break
        fi
    done
    echo "$SHA256  $ARCHIVE" | sha256sum -c --quiet >&2
    rm -rf "$DIR/redis-$VERSION"
    mkdir "$DIR/redis-$VERSION"
    tar -xzf "$ARCHIVE" -C "$DIR/redis-$VERSION" --strip-components 1
    # The C library's allocator: what it answers is compared, not how fast.
    make -C "$DIR/redis-$VERSION/src" -j"$(nproc)" MALLOC=libc OPTIMIZATION=-O1 redis-server >"$DIR/build.log" 2>&1 ||
        { tail -20 "$DIR/build.log" >&2; exit 1; }
fi
realpath "$SERVER"
