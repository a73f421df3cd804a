#!/usr/bin/env bash
# Runs the tests against TensorFlow, Keras and TensorBoard. Installs these from PyPI into a virtual environment in
# ~/.cache/tfjob. If TFJOB_DEEP is set, runs more random models and, in an environment of its own, the tests against
# PyTorch (6 GB).
#
#   tests/interop/run.sh [RESULTS]     appends "<passed> <failed> tests/interop" to the file RESULTS, and the output of
#                                      failed tests to RESULTS.failures
source "$(dirname "${BASH_SOURCE[0]}")/../../deploy/dev/lib.sh"
install_packages build test

python=$(python_environment interop tests/interop/requirements.txt)
if [ -n "${TFJOB_DEEP-}" ]; then torch_python=$(python_environment interop-torch tests/interop/torch.txt); fi
config=(${INTEROP_CONFIG---config=release})
bazel build "${config[@]}" //tests/interop:interop_tool //runtime/cmd:tfjob-trainer
bin=$(bazel info "${config[@]}" bazel-bin 2>/dev/null)
export INTEROP_TOOL=$bin/tests/interop/interop_tool INTEROP_TRAINER=$bin/runtime/cmd/tfjob-trainer
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT

# run_file NAME: runs the tests of a file, and copies their output to a log. Each printed line starts with the name.
run_file() {
  local program=$python
  if [ "$1" = torch_test ]; then program=$torch_python; fi
  {
    "$program" -m unittest discover --verbose --start-directory tests/interop --pattern "$1.py" 2>&1 ||
      { echo "ended with exit status $?" && false; }
  } | sed -u "s|^|$1: |" | tee "$logs/$1"
}

# TensorFlow traces and compiles on one core, so run two files at a time, starting with those that take longest.
first=(random_models_test whole_models_test compiled_test interop_test)
mapfile -t rest < <(cd tests/interop && ls ./*_test.py | sed 's|^./||; s|.py$||' |
  grep -vxF "$(printf '%s\n' "${first[@]}" torch_test)")
if [ -n "${TFJOB_DEEP-}" ]; then rest+=(torch_test); fi
status=0
two_at_a_time run_file "${first[@]}" "${rest[@]}" || status=1
if [ $# -gt 0 ]; then
  echo "$(count_unittests $status "$logs"/*) tests/interop" >>"$1"
  unittest_failures "$logs"/* >>"$1.failures"
fi
exit $status
