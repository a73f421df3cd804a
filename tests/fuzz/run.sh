#!/usr/bin/env bash
# Fuzzes every target of tests/fuzz, two at a time, and exits with 1 if a property was violated.
#
#   tests/fuzz/run.sh [--seconds N] [--results FILE] [TARGET…]
#
#   --seconds N      how long each target is fuzzed (default: 5)
#   --results FILE   appends a line "<passed> <failed> <what>" per target, for deploy/test.sh
#   TARGET…          such as watch (default: all)
#
# Does not change the corpora in the tree: new inputs are written to a temporary folder, and inputs
# that violate a property to ~/.cache/tfjob/fuzz.
source "$(dirname "${BASH_SOURCE[0]}")/../../deploy/dev/lib.sh"

seconds=5 results=/dev/null targets=()
while [ $# -gt 0 ]; do
  case $1 in
    --seconds) seconds=$2; shift 2 ;;
    --results) results=$2; shift 2 ;;
    -h | --help) sed -n '2,11s/^# \{0,1\}//p' tests/fuzz/run.sh; exit 0 ;;
    -*) echo "unknown argument $1; try --help" >&2; exit 2 ;;
    *) targets+=("$1"); shift ;;
  esac
done
[ ${#targets[@]} -gt 0 ] || mapfile -t targets < <(ls tests/fuzz/corpus)

# fuzz TARGET: fuzzes one target, and writes the target's line of the results.
fuzz() {
  local target=$1 log=$work/$1.log what="tests/fuzz:$1_fuzz sanitize"
  mkdir "$work/$target"
  # Do not detect leaks here, because libFuzzer would look for leaks after nearly every input that uses threads. The
  # replay tests detect them.
  if "$bin/tests/fuzz/${target}_fuzz" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 -detect_leaks=0 \
    -artifact_prefix="$found/$target-" "$work/$target" "tests/fuzz/corpus/$target" >"$log" 2>&1; then
    echo "    $target: $(sed -n 's/^Done \([0-9]*\) runs.*/\1/p' "$log") inputs keep the properties"
    echo "1 0 $what" >>"$results"
    return
  fi
  report "$target" "$log" >"$log.report"
  cat "$log.report"
  echo "0 1 $what" >>"$results"
  return 1
}

# report TARGET LOG: prints why the target failed, and the input that failed.
report() {
  local input
  echo "FAILED: $1"
  grep -avE '^#[0-9]+\s+(INITED|NEW|REDUCE|RELOAD|pulse)|^INFO:' "$2" | tail -n 40
  input=$(sed -n 's/.*Test unit written to //p' "$2" | tail -n 1)
  if [ -f "$input" ]; then
    echo "The input is $input. Keep it in tests/fuzz/corpus/$1 once the code is corrected."
    [ "$(stat -c %s "$input")" -gt 4096 ] || { echo "In base64:"; base64 "$input"; }
  fi
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
found=${XDG_CACHE_HOME:-$HOME/.cache}/tfjob/fuzz
mkdir -p "$found"
mapfile -t labels < <(printf '//tests/fuzz:%s_fuzz\n' "${targets[@]}")
deploy/dev/bazel.py build --config=sanitize "${labels[@]}"
bin=$(bazel info --config=sanitize bazel-bin 2>/dev/null)

two_at_a_time fuzz "${targets[@]}"
