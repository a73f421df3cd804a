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
log=$(mktemp)
trap 'rm -f "$log"' EXIT
status=0
"$python" -m unittest discover --verbose --start-directory tests/interop --pattern '*_test.py' 2>&1 |
  tee "$log" || status=1
ran=$(sed -n 's/^Ran \([0-9]*\) tests\{0,1\} .*/\1/p' "$log")
bad=$(sed -n 's/^FAILED (\(.*\))$/\1/p' "$log" | tr ',' '\n' | sed 's/.*=//' | awk '{n += $1} END {print n + 0}')
[ "$status" -eq 0 ] || [ "$bad" -gt 0 ] || bad=1
if [ $# -gt 0 ]; then echo "$((${ran:-0} - bad < 0 ? 0 : ${ran:-0} - bad)) $bad tests/interop" >>"$1"; fi
exit $status
