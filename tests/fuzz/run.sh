#!/bin/sh
# Runs every fuzz target for SECONDS (default 60), two at a time, from its corpus where it has one,
# and fails when one finds a crash, a leak, undefined behaviour, a hang or memory out of bounds.
#   tests/fuzz/run.sh [SECONDS] [BUILD_DIR]     BUILD_DIR: the fuzz preset's, default build/fuzz
set -u
seconds=${1:-60}
source_dir=$(cd "$(dirname "$0")/../.." && pwd)
build_dir=$(cd "${2:-$source_dir/build/fuzz}" && pwd) || exit 2
work_dir=$(mktemp -d) || exit 2
trap 'rm -rf "$work_dir"' EXIT
failed=0

start() {
  kind=$1
  mkdir -p "$work_dir/$kind/units"
  corpus=$source_dir/tests/data/corpus/$kind
  set --
  if [ -d "$corpus" ]; then set -- "$corpus"/*/; fi
  # New units go to the first folder; the corpus is only read.
  "$build_dir/fuzz/fuzz_$kind" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 \
    -malloc_limit_mb=512 -max_len=65536 -print_final_stats=1 \
    -artifact_prefix="$work_dir/$kind/" "$work_dir/$kind/units" "$@" \
    >"$work_dir/$kind/log" 2>&1
  echo $? >"$work_dir/$kind/status"
}

report() {
  kind=$1
  runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$work_dir/$kind/log")
  peak=$(sed -n 's/^stat::peak_rss_mb: *//p' "$work_dir/$kind/log")
  if [ "$(cat "$work_dir/$kind/status")" = 0 ]; then
    printf '%-16s %10s runs in %s s, %s MiB at most\n' "$kind" "$runs" "$seconds" "$peak"
    return
  fi
  failed=1
  printf '%-16s FAILED\n' "$kind"
  tail -n 40 "$work_dir/$kind/log"
  for unit in "$work_dir/$kind"/crash-* "$work_dir/$kind"/leak-* "$work_dir/$kind"/oom-* \
    "$work_dir/$kind"/timeout-*; do
    [ -f "$unit" ] || continue
    echo "the input, $(wc -c <"$unit") bytes, base64:"
    base64 "$unit"
  done
}

run_pair() {
  for pair_kind in "$@"; do start "$pair_kind" & done
  wait
  for pair_kind in "$@"; do report "$pair_kind"; done
}

run_pair npy safetensors
run_pair jsonl ids
run_pair interactions collection_json
run_pair filter reply
run_pair connection request
exit "$failed"
