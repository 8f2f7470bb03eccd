#!/bin/sh
# Runs the test suites of real clients and frameworks against the server, at 1 and 4 shards, and fails when something is
# lost against Redis 8.0 that tests/clients/excluded.txt does not name.
#
#   CLIENTS_RUNNER=FILE scripts/suites.sh [CHECK...]
#
# CLIENTS_RUNNER: the program that installs and drives the suites, with its baselines beside it (the tool `clients/run`);
# it names the checks, by default all that are not slow. OUT: where the results go, by default under the target directory.
# PERIGEE_BIN: the server, else a build. PORT: the first of the ports for servers. JOBS: checks at a time.
set -u
cd "$(dirname "$0")/.." || exit 1

: "${CLIENTS_RUNNER:?the program that drives the suites}"
TARGET=${CARGO_TARGET_DIR:-target}
OUT=${OUT:-$TARGET/suites}
BASE=redis-8.0.6

if [ -z "${PERIGEE_BIN:-}" ]; then
    cargo build -q --profile release-fast || exit 1
    PERIGEE_BIN=$TARGET/release-fast/perigee
fi
PERIGEE_BIN=$(realpath "$PERIGEE_BIN")
mkdir -p "$OUT"
OUT=$(realpath "$OUT")

# What passed on Redis and did not here, but for what the list names and what passes there by chance only.
judge() {
    python3 - "$1" "$(dirname "$CLIENTS_RUNNER")" "$BASE" <<'PYTHON'
import fnmatch, gzip, json, sys

results, tools, base = sys.argv[1:]
base = json.load(gzip.open(f"{tools}/baseline/{base}.json.gz"))["checks"]
base = {check["name"]: check for check in base} if isinstance(base, list) else base
rules = [line.rstrip("\n").split("\t") for line in open("tests/clients/excluded.txt") if line.strip() and line[0] != "#"]
bad = [rule for rule in rules if len(rule) != 3]
assert not bad, f"tests/clients/excluded.txt: every line is a check, a test and a reason, parted by tabs: {bad}"
chance = [line.split("\t")[0].split(" ", 1) for line in open(f"{tools}/excluded/unstable.txt") if " " in line and line[0] != "#"]


def is_excused(check, test, text):
    if any(check == name and fnmatch.fnmatchcase(test, start + "*") for name, start in chance):
        return True
    for name, pattern, _ in rules:
        if name == "says":
            if pattern.lower() in text.lower():
                return True
        elif fnmatch.fnmatchcase(check, name) and fnmatch.fnmatchcase(test.replace("[", "("), pattern.replace("[", "(")):
            return True
    return False


lost = excused = 0
checks = json.load(open(results))["checks"]
for check in checks.values() if isinstance(checks, dict) else checks:
    name, passed, failures = check["name"], set(check.get("pass_ids", [])), check.get("failures", {})
    for test in base.get(name, {}).get("pass_ids", []):
        if test in passed:
            continue
        text = failures.get(test, "did not run")
        if is_excused(name, test, text):
            excused += 1
            continue
        lost += 1
        print(f"{name}: {test}: {text[:300]}")
print(f"lost {lost}, excused {excused}")
sys.exit(bool(lost))
PYTHON
}

FAILED=0
for shards in ${SHARDS:-1 4}; do
    echo "== $shards shard(s)"
    "$CLIENTS_RUNNER" -j "${JOBS:-1}" --server "$PERIGEE_BIN {conf} --shards $shards" --against "$BASE" \
        --json "$OUT/$shards.json" 127.0.0.1 "${PORT:-7501}" "$@" >"$OUT/$shards.log" 2>&1
    grep -E ' passed .* failed ' "$OUT/$shards.log" | cut -c1-80
    judge "$OUT/$shards.json" || FAILED=1
done
exit "$FAILED"
