#!/bin/sh
# Real clients against the server: redis-cli in its several modes, redis-benchmark with every test that applies, and
# redis-py where Python has it. Each at 1 and 4 shards.
set -u
cd "$(dirname "$0")/.." || exit 1

cargo build -q --profile test || exit 1
BINARY=${PERIGEE_BIN:-${CARGO_TARGET_DIR:-target}/debug/perigee}
# Names that redis-benchmark knows, of families that the server has.
BENCHMARKS=ping_inline,ping_mbulk,set,get,incr,mset
DIR=$(mktemp -d)
SERVER=
PORT=
FAILED=0

stop() {
    [ -n "$SERVER" ] && kill "$SERVER" 2>/dev/null && wait "$SERVER"
    SERVER=
}
trap 'stop; rm -rf "$DIR"' EXIT

start() {
    PORT=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])' 2>/dev/null || echo 17379)
    "$BINARY" --port "$PORT" --shards "$1" --dir "$DIR" >"$DIR/log" 2>&1 &
    SERVER=$!
    for _ in $(seq 100); do
        grep -q "Ready to accept" "$DIR/log" && return
        sleep 0.05
    done
    cat "$DIR/log"
    exit 1
}

cli() { timeout 60 redis-cli -p "$PORT" "$@"; }

# expect WHAT WANT GOT
expect() {
    [ "$2" = "$3" ] && return
    printf 'FAILED: %s\n  want: %s\n   got: %s\n' "$1" "$2" "$3"
    FAILED=1
}

# holds WHAT TEXT PATTERN
holds() {
    printf '%s\n' "$2" | grep -qE -- "$3" && return
    printf 'FAILED: %s: no %s in\n%s\n' "$1" "$3" "$2"
    FAILED=1
}

try_cli() {
    expect "redis-cli" "PONG" "$(cli ping)"
    expect "redis-cli RESP3" "OK" "$(cli -3 set a 1)"
    expect "redis-cli from a pipe" "$(printf 'OK\n2')" "$(printf 'set n 1\nincr n\n' | cli)"
    awk 'BEGIN { for (i = 0; i < 20000; i++) printf "SET pipe:%d %d\r\n", i, i }' >"$DIR/pipe"
    holds "redis-cli --pipe" "$(cli --pipe <"$DIR/pipe")" "errors: 0, replies: 20000"
    expect "redis-cli --scan" 20000 "$(cli --scan --pattern 'pipe:*' | sort -u | wc -l | tr -d ' ')"
    cli set big:string "$(head -c 5000 /dev/zero | tr '\0' x)" >/dev/null
    holds "redis-cli --bigkeys" "$(cli --bigkeys)" "big:string.* 5000 bytes"
    holds "redis-cli --memkeys" "$(cli --memkeys)" "big:string"
    holds "redis-cli --stat" "$(timeout 1 stdbuf -oL redis-cli -p "$PORT" --stat -i 0.1)" "keys"
    holds "redis-cli --latency" "$(cli --raw --latency -i 1 2>/dev/null | head -c 200)" "^[0-9]+ [0-9]+ [0-9.]+"
    holds "redis-cli info" "$(cli info server)" "perigee_version:"
}

try_benchmark() {
    cli flushall >/dev/null
    report=$(timeout 120 redis-benchmark -p "$PORT" -q -n 20000 -P 16 -r 1000 -t "$BENCHMARKS" 2>&1 | tr '\r' '\n')
    expect "redis-benchmark" 6 "$(printf '%s\n' "$report" | grep -cE '^[A-Z_ (0-9)a-z]+: [0-9.]+ requests per second')"
    case $report in *rror*) printf 'FAILED: %s\n' "$report"; FAILED=1 ;; esac
    expect "redis-benchmark's keys" 1000 "$(cli --scan --pattern 'key:*' | sort -u | wc -l | tr -d ' ')"
}

# redis-py, from pip into a folder of ours when Python lacks it.
have_redis_py() {
    PYTHONPATH=$PWD/target/redis-py${PYTHONPATH:+:$PYTHONPATH}
    export PYTHONPATH
    python3 -c 'import redis' 2>/dev/null && return
    python3 -m pip install -q --target target/redis-py redis >"$DIR/pip" 2>&1 && python3 -c 'import redis' && return
    tail -3 "$DIR/pip"
    return 1
}

try_redis_py() {
    have_redis_py || { echo "redis-py: neither there nor to be had, not tried"; return; }
    timeout 60 python3 - "$PORT" <<'PYTHON' || FAILED=1
import sys
import redis

for protocol in (2, 3):
    r = redis.Redis(port=int(sys.argv[1]), protocol=protocol, decode_responses=True)
    r.flushall()
    assert r.set("a", 1, ex=100) and r.get("a") == "1" and 90 < r.ttl("a") <= 100
    assert r.mset({f"k{i}": i for i in range(100)}) and r.mget("k1", "k99", "none") == ["1", "99", None]
    assert sorted(r.scan_iter("k*")) == sorted(f"k{i}" for i in range(100))
    pipe = r.pipeline(transaction=False)
    for i in range(1000):
        pipe.incr("n")
    assert pipe.execute() == list(range(1, 1001))
    assert r.setbit("b", 7, 1) == 0 and r.bitcount("b") == 1
    assert r.info("server")["redis_version"].startswith("8.0")
    assert r.config_get("databases") == {"databases": "16"}
    assert r.client_setname("me") and r.client_getname() == "me" and len(r.client_list()) >= 1
    try:
        r.incr("b")
    except redis.ResponseError as error:
        assert "not an integer" in str(error), error
    else:
        raise AssertionError("INCR of bits")
PYTHON
}

for shards in 1 4; do
    start "$shards"
    try_cli
    try_benchmark
    try_redis_py
    stop
done
[ "$FAILED" -eq 0 ] && echo "real clients: fine"
exit "$FAILED"
