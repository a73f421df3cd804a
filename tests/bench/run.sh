#!/bin/bash
# Runs benchmarks from optimised builds; each prints one JSON line or several (tests/bench/report.h).
#
#   tests/bench/run.sh [CASE…] [--peer tensorflow|torch] [flags for the cases]
#   tests/bench/run.sh --list
#
# Without a case all of them run. With --peer the same case runs in the peer too, right after ours; its virtual
# environment is made once, in ~/.cache/tfjob-peers. Progress goes to standard error.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)

list() { grep -v '^#' "$here/cases"; }
fail() { echo "run.sh: $*" >&2; exit 2; }

cases=() peers=() flags=()
while (($#)); do
  case $1 in
    --list) list; exit ;;
    --peer) [[ ${2-} =~ ^(tensorflow|torch)$ ]] || fail "--peer takes tensorflow or torch"; peers+=("$2"); shift ;;
    --help|-h) sed -n '2,8s/^# \{0,1\}//p' "$0"; exit ;;
    -*) flags=("$@"); break ;;  # the rest is the cases'
    *) cases+=("$1") ;;
  esac
  shift
done
# --peer may also stand among the flags.
rest=()
for ((i = 0; i < ${#flags[@]}; ++i)); do
  if [[ ${flags[i]} == --peer ]]; then
    peer=${flags[i + 1]-}
    [[ $peer =~ ^(tensorflow|torch)$ ]] || fail "--peer takes tensorflow or torch"
    peers+=("$peer"); i=$((i + 1))
  else
    rest+=("${flags[i]}")
  fi
done
((${#cases[@]})) || mapfile -t cases < <(list | awk '{print $1}')

targets=()
for name in "${cases[@]}"; do
  target=$(list | awk -v name="$name" '$1 == name {print $2}')
  [[ $target ]] || fail "no case \"$name\"; there are: $(list | awk '{printf "%s ", $1}')"
  targets+=("$target")
done

cd "$root"
bazel build --config=release "${targets[@]}" >&2
bin=$(bazel info --config=release bazel-bin 2> /dev/null)
for peer in "${peers[@]}"; do "$here/peers/setup.sh" "$peer" >&2; done
for i in "${!cases[@]}"; do
  target=${targets[i]#//}
  "$bin/${target/://}" "${rest[@]}"
  for peer in "${peers[@]}"; do
    program=$here/peers/${peer}_${cases[i]//-/_}.py
    if [[ -f $program ]]; then
      "$("$here/peers/setup.sh" "$peer")" "$program" "${rest[@]}"
    else
      echo "run.sh: $peer has no program for ${cases[i]}" >&2
    fi
  done
done
