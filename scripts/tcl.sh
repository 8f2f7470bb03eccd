#!/bin/sh
# Runs Tcl test files of Valkey 9.1's suite against the server, at 1 and 4 shards, and fails when a test fails that
# tests/tcl/skips.txt does not name.
#
#   SUITE=DIR TCL_RUNNER=FILE scripts/tcl.sh [UNIT...]
#
# MODE: `external` (the default: the suite finds a server that runs) or `full` (it starts servers itself, with files that
# it has made; each test file has a network of its own, so this must be root).
# SUITE: an unpacked source tree of Valkey 9.1 (the release archive, or a distribution's source package).
# TCL_RUNNER: the program that drives the suite one file at a time and writes results.json (the tool `tcl-suite/run`).
# OUT: where the reports go, by default under the target directory. PERIGEE_BIN: the server, else a build.
set -u
cd "$(dirname "$0")/.." || exit 1

: "${SUITE:?an unpacked source tree of Valkey 9.1}"
: "${TCL_RUNNER:?the program that drives the suite}"
TARGET=${CARGO_TARGET_DIR:-target}
OUT=${OUT:-$TARGET/tcl}
MODE=${MODE:-external}
EXTERNAL_UNITS="unit/type/string unit/type/incr unit/type/list unit/type/list-2 unit/type/list-3 unit/type/set unit/type/zset
    unit/type/hash unit/type/stream unit/type/stream-cgroups unit/hashexpire unit/geo unit/hyperloglog unit/bitops
    unit/bitfield unit/sort unit/scan unit/dump unit/keyspace unit/expire unit/other unit/protocol unit/querybuf
    unit/limits unit/quit unit/multi unit/tracking unit/pubsub unit/scripting unit/functions unit/introspection unit/introspection-2 unit/info-command
    unit/slowlog unit/latency-monitor unit/lazyfree unit/pause unit/violations unit/replybufsize"
FULL_UNITS="integration/aof integration/aof-multi-part integration/rdb integration/corrupt-dump
    integration/corrupt-dump-fuzzer integration/convert-zipmap-hash-on-load integration/convert-ziplist-hash-on-load
    integration/convert-ziplist-zset-on-load unit/aofrw unit/shutdown"
case $MODE in
external) UNITS=${*:-$EXTERNAL_UNITS} ;;
full) UNITS=${*:-$FULL_UNITS} ;;
*)
    echo "MODE is external or full" >&2
    exit 1
    ;;
esac
PORT=${PORT:-17301}

if [ -z "${PERIGEE_BIN:-}" ]; then
    cargo build -q --profile release-fast || exit 1
    PERIGEE_BIN=$TARGET/release-fast/perigee
fi
PERIGEE_BIN=$(realpath "$PERIGEE_BIN")
mkdir -p "$OUT"
OUT=$(realpath "$OUT")

# The runner wants names only; the reasons stand behind a tab.
grep -vE '^(#|$)' tests/tcl/skips.txt | cut -f1 >"$OUT/skips"
if grep -vE '^(#|$)' tests/tcl/skips.txt | grep -qvP '^[^\t]+\t+[^\t]+$'; then
    echo "tests/tcl/skips.txt: every line is a name, a tab and a reason" >&2
    exit 1
fi

# What failed, was cut short or hung, unless the list names it: a test by its name, a part of a file as "FILE (block)",
# "FILE (file)" or "FILE (server start)".
judge() {
    python3 - "$1" "$OUT/skips" <<'EOF'
import json, sys
skips = set(open(sys.argv[2]).read().splitlines())
bad = []
for file in json.load(open(sys.argv[1]))["files"]:
    if file["status"] in ("timeout", "server-down", "broken"):
        bad.append(f'{file["file"]}: {file["status"]}')
    for test in file["tests"]:
        name = test["name"]
        whole = f'{file["file"]} {name}' if name in ("(block)", "(file)", "(server start)") else name
        if test["status"] in ("err", "exception", "timeout") and whole not in skips:
            bad.append(f'{file["file"]}: {name}: {test["status"]}')
print("\n".join(bad), end="\n" if bad else "")
sys.exit(bool(bad))
EOF
}

external() {
    # shellcheck disable=SC2086
    env SUITE="$SUITE" PORT="$PORT" OUT="$2" SKIPFILE="$OUT/skips" NICE="${NICE:-0}" \
        START_CMD="exec $PERIGEE_BIN --port {port} --dir {dir} --shards $1 --save '' --enable-protected-configs yes --enable-debug-command yes --enable-module-command yes" \
        "$TCL_RUNNER" $UNITS
}

full() {
    # shellcheck disable=SC2086
    env SUITE="$SUITE" SERVER_BIN="$PERIGEE_BIN" WRAP_ARGS="--shards $1" NETNS=1 OUT="$2" SKIPFILE="$OUT/skips" \
        NICE="${NICE:-0}" "$TCL_RUNNER" $UNITS
}

FAILED=0
for shards in ${SHARDS:-1 4}; do
    echo "== $shards shard(s)"
    "$MODE" "$shards" "$OUT/$shards" || FAILED=1
    judge "$OUT/$shards/results.json" || FAILED=1
done
exit "$FAILED"
