#!/usr/bin/env bash
# fuzz.sh [SECONDS] [TARGET...]: builds the fuzz targets and runs each for SECONDS (default 60; a smoke run: 10).
#
# Without names, every file of fuzz/fuzz_targets/ is run. A finding ends the run with status 1; the path of the input
# is printed, and `scripts/fuzz.sh --replay TARGET FILE` runs just that input.
# Needs cargo (stable) and a C++ compiler, which apt brings when there is none. New inputs that reach new code are kept
# in fuzz/corpus/ (not in the repository); fuzz/seeds/ holds the ones to start from.
set -euo pipefail
cd "$(dirname "$0")/.."

if ! command -v c++ >/dev/null && ! command -v g++ >/dev/null && ! command -v clang++ >/dev/null; then
  as_root=; [ "$(id -u)" = 0 ] || as_root=sudo
  $as_root apt-get update -qq && $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq g++ >&2
fi

# What libFuzzer steers by: counters on edges, and the operands of comparisons. These are LLVM passes, which a stable
# compiler has too; only its driver option for them is missing. A target triple keeps build scripts without them.
triple=$(rustc -vV | sed -n 's/^host: //p')
build() {
  local flags="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4"
  flags+=" -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table"
  flags+=" -Cllvm-args=-sanitizer-coverage-trace-compares -Ccodegen-units=1 --cfg fuzzing"
  RUSTFLAGS="$flags" cargo build --quiet --release --manifest-path fuzz/Cargo.toml \
    --target-dir fuzz/target --target "$triple" --bins
}

binary() { echo "fuzz/target/$triple/release/$1"; }

if [ "${1:-}" = --replay ]; then
  build
  exec "$(binary "$2")" "$3"
fi

seconds=${1:-60}
[[ $seconds =~ ^[0-9]+$ ]] || { echo "usage: scripts/fuzz.sh [SECONDS] [TARGET...]" >&2; exit 2; }
shift $(($# > 0))
targets=("$@")
if [ ${#targets[@]} = 0 ]; then
  for file in fuzz/fuzz_targets/*.rs; do targets+=("$(basename "$file" .rs)"); done
fi

build
failed=()
for target in "${targets[@]}"; do
  corpus=fuzz/corpus/$target found=fuzz/artifacts/$target
  mkdir -p "$corpus" "$found"
  log=$found/last.log
  echo "== $target: $seconds s"
  if "$(binary "$target")" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 -max_len=4096 \
      -print_final_stats=1 -artifact_prefix="$found/" "$corpus" "fuzz/seeds/$target" >"$log" 2>&1; then
    grep -aE '^(Done|stat::number_of_executed_units|stat::new_units_added)' "$log" || true
  else
    failed+=("$target")
    grep -a -A 4 'panicked at' "$log" | head -n 12 || tail -n 40 "$log"
    input=$(sed -n 's/.*Test unit written to \(.*\)/\1/p' "$log" | tail -1)
    echo "CRASH in $target, input: ${input:-none written, see $log}" >&2
  fi
done
if [ ${#failed[@]} -gt 0 ]; then
  echo "failed: ${failed[*]}" >&2
  exit 1
fi
