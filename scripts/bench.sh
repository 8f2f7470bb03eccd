#!/usr/bin/env bash
# bench.sh [options]: throughput, server CPU per request and memory of Perigee beside other servers.
#
# Builds the release binary and prints Markdown tables (BENCHMARK.md holds such tables); progress goes to standard
# error. `--help` lists the options; the method is described at the top of scripts/bench.py and in BENCHMARK.md.
#
#   scripts/bench.sh                                             everything, beside redis-server
#   scripts/bench.sh --mode throughput --families GET,SET --depths 1,64
#   scripts/bench.sh --mode memory --cases 8,64
#   scripts/bench.sh --families containers --cases containers    lists, hashes, sets, sorted sets, streams and others
#   VALKEY_BIN=.../valkey-server BENCH_BIN=.../valkey-benchmark scripts/bench.sh
#
# Environment: REDIS_BIN (default: redis-server of the PATH; empty: leave it out), VALKEY_BIN (default: none),
# BENCH_BIN (default: redis-benchmark), PERIGEE_BIN (default: built here). Missing redis-server and redis-benchmark are
# installed by apt.
set -euo pipefail
cd "$(dirname "$0")/.."

redis=${REDIS_BIN-redis-server}
bench=${BENCH_BIN:-redis-benchmark}
packages=()
command -v python3 >/dev/null || packages+=(python3)
[ -z "$redis" ] || command -v "$redis" >/dev/null || { packages+=(redis-server); redis=redis-server; }
command -v "$bench" >/dev/null || { packages+=(redis-tools); bench=redis-benchmark; }
if [ ${#packages[@]} -gt 0 ]; then
  as_root=; [ "$(id -u)" = 0 ] || as_root=sudo
  { $as_root apt-get update -qq
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "${packages[@]}"; } >&2
fi

if [ -z "${PERIGEE_BIN:-}" ]; then
  cargo build --release --locked --bin perigee >&2
  PERIGEE_BIN=${CARGO_TARGET_DIR:-target}/release/perigee
fi

servers=(--server "perigee=$PERIGEE_BIN")
[ -z "${VALKEY_BIN:-}" ] || servers+=(--server "valkey=$VALKEY_BIN")
[ -z "$redis" ] || servers+=(--server "redis=$redis")
exec python3 scripts/bench.py "${servers[@]}" --bench "$bench" "$@"
