#!/bin/sh
# Runs everything that must pass: format, lints, unit tests, the tidy test, the simulation, what the log gets,
# the server over the wire, kills and failing disks, the size sweep, the differential tests against redis-server, loom on
# the latch, the Tcl suite where there is one, a smoke run of the fuzz targets.
#
#   scripts/test.sh            everything
#   scripts/test.sh wire diff  only these steps
#
# On Debian what is missing is installed by apt (as root, or by sudo). Settings: PERIGEE_REDIS (a redis-server 8.0 to
# compare with, else scripts/reference.sh builds one), PERIGEE_DIFF_OPTIONAL=1 (do without one), SUITE (see
# scripts/tcl.sh), CARGO_TARGET_DIR.
#
# The last line says how many tests passed and failed: `N passed, N failed`.
set -u
cd "$(dirname "$0")/.." || exit 1

STEPS="${*:-fmt clippy unit tidy sim log wire crash sweep diff clients loom fuzz tcl}"
LOG_DIR=$(mktemp -d)
trap 'rm -rf "$LOG_DIR"' EXIT
PASSED=0
FAILED=0

say() { printf '\n== %s\n' "$*"; }

# install PACKAGE...: by apt, if there is apt and we may.
install() {
    command -v apt-get >/dev/null || return 1
    become=""
    [ "$(id -u)" = 0 ] || become="sudo -n"
    say "apt-get install $*"
    { $become apt-get update -q && $become env DEBIAN_FRONTEND=noninteractive apt-get install -qy --no-install-recommends "$@"; } \
        >"$LOG_DIR/apt" 2>&1 || { tail -5 "$LOG_DIR/apt"; return 1; }
}

# Only for comparison: a redis-server that apt starts as a service is of no use to anybody here.
need_redis() {
    [ -n "${PERIGEE_REDIS:-}" ] && return
    missing=""
    command -v redis-server >/dev/null || missing="redis-server"
    command -v redis-cli >/dev/null || missing="$missing redis-tools"
    [ -z "$missing" ] && return
    # Level 1: apt starts no service.
    RUNLEVEL=1
    export RUNLEVEL
    # shellcheck disable=SC2086
    install $missing || echo "could not install $missing"
}

# The version that the differential tests compare with; distributions have older ones.
need_reference() {
    [ -n "${PERIGEE_REDIS:-}" ] && return
    command -v curl >/dev/null || command -v wget >/dev/null || install curl ca-certificates
    say "redis-server to compare with"
    PERIGEE_REDIS=$(scripts/reference.sh) && export PERIGEE_REDIS
    echo "${PERIGEE_REDIS:-could not be built}"
}

# one NAME COMMAND...: a check that counts as one test.
one() {
    name=$1
    shift
    say "$name"
    if "$@"; then
        PASSED=$((PASSED + 1))
    else
        FAILED=$((FAILED + 1))
        echo "FAILED: $name"
    fi
}

# tests NAME COMMAND...: a run of cargo's test harness, whose tests are counted.
tests() {
    name=$1
    shift
    say "$name"
    "$@" >"$LOG_DIR/$name" 2>&1
    status=$?
    passed=$(sed -n 's/^test result: .* \([0-9]*\) passed.*/\1/p' "$LOG_DIR/$name" | awk '{n += $1} END {print n + 0}')
    failed=$(sed -n 's/^test result: .* \([0-9]*\) failed.*/\1/p' "$LOG_DIR/$name" | awk '{n += $1} END {print n + 0}')
    if [ $status -ne 0 ]; then
        cat "$LOG_DIR/$name"
        [ "$failed" -gt 0 ] || failed=1
        echo "FAILED: $name"
    else
        grep -E '^\*\*\*' "$LOG_DIR/$name"
    fi
    echo "$passed passed, $failed failed"
    PASSED=$((PASSED + passed))
    FAILED=$((FAILED + failed))
}

run_step() {
    case $1 in
    fmt) one format cargo fmt --all --check ;;
    clippy) one clippy cargo clippy -q --profile test --all-targets -- -D warnings ;;
    unit) tests unit cargo test --lib --bins ;;
    tidy) tests tidy cargo test --test tidy ;;
    sim) tests sim cargo test --test sim ;;
    log) tests log cargo test --test log ;;
    wire) tests wire cargo test --test wire ;;
    crash) tests crash cargo test --test crash ;;
    sweep) tests sweep cargo test --test sweep ;;
    diff)
        need_reference
        tests diff cargo test --test diff
        ;;
    clients)
        need_redis
        one "real clients" scripts/clients.sh
        ;;
    loom)
        tests loom env RUSTFLAGS="--cfg loom" cargo test --test loom --target-dir target-loom
        ;;
    fuzz)
        one "fuzz, a few seconds" scripts/fuzz.sh 8
        ;;
    tcl)
        if [ -n "${SUITE:-}" ] && [ -n "${TCL_RUNNER:-}" ]; then
            one "tcl suite" scripts/tcl.sh
        else
            say "tcl suite: not run, SUITE and TCL_RUNNER are not set (see scripts/tcl.sh)"
        fi
        ;;
    *)
        echo "unknown step $1" >&2
        exit 2
        ;;
    esac
}

START=$(date +%s)
for step in $STEPS; do
    run_step "$step"
done
say "took $(($(date +%s) - START)) s"
echo "$PASSED passed, $FAILED failed"
[ "$FAILED" -eq 0 ]
