#!/usr/bin/env bash
# Runs the tests against TensorFlow, Keras and TensorBoard, which are installed from PyPI into a
# virtual environment in ~/.cache/tfjob.
#
#   tests/interop/run.sh [RESULTS]     appends "<passed> <failed> tests/interop" to the file RESULTS
source "$(dirname "${BASH_SOURCE[0]}")/../../deploy/dev/lib.sh"
install_packages build test

python=$(python_environment interop tests/interop/requirements.txt)
config=(${INTEROP_CONFIG---config=release})
bazel build "${config[@]}" //tests/interop:interop_tool //runtime/cmd:tfjob-trainer
bin=$(bazel info "${config[@]}" bazel-bin 2>/dev/null)
export INTEROP_TOOL=$bin/tests/interop/interop_tool INTEROP_TRAINER=$bin/runtime/cmd/tfjob-trainer
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT

# run_file NAME: runs the tests of a file, and copies their output to a log. Each line that it prints begins with the
# name.
run_file() {
  "$python" -m unittest discover --verbose --start-directory tests/interop --pattern "$1.py" 2>&1 |
    sed -u "s|^|$1: |" | tee "$logs/$1"
}

# TensorFlow traces and compiles on one core, so two files run at a time. The two that take longest come first.
first=(interop_test random_models_test)
mapfile -t rest < <(cd tests/interop && ls ./*_test.py | sed 's|^./||; s|.py$||' |
  grep -vxF "$(printf '%s\n' "${first[@]}")")
running=0 status=0
for name in "${first[@]}" "${rest[@]}"; do
  if [ $running -eq 2 ]; then
    wait -n || status=1
    running=$((running - 1))
  fi
  run_file "$name" &
  running=$((running + 1))
done
while [ $running -gt 0 ]; do
  wait -n || status=1
  running=$((running - 1))
done
ran=$(cat "$logs"/* | sed -n 's/^.*: Ran \([0-9]*\) tests\{0,1\} in .*/\1/p' | awk '{n += $1} END {print n + 0}')
bad=$(cat "$logs"/* | sed -n 's/^.*: FAILED (\(.*\))$/\1/p' | tr ',' '\n' | sed -n 's/.*\(failures\|errors\)=//p' |
  awk '{n += $1} END {print n + 0}')
[ "$status" -eq 0 ] || [ "$bad" -gt 0 ] || bad=1
if [ $# -gt 0 ]; then echo "$((ran - bad < 0 ? 0 : ran - bad)) $bad tests/interop" >>"$1"; fi
exit $status
