#!/usr/bin/env bash
# Builds the trainer with CUDA kernels and checks what can be checked without a GPU: the machine code of the kernels
# stays within its limits, the program trains on the CPU, and its self-test says that there is no GPU. Part of
# deploy/test.sh --deep. The first run downloads 1.1 GB (deploy/dev/cuda.sh).
#
#   deploy/dev/cuda_check.sh RESULTS    appends "<passed> <failed> <what>" to RESULTS for each check
case ${1:-} in
  -h | --help) sed -n '2,6s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" && exit ;;
  "") echo "the argument RESULTS is missing; try --help" >&2 && exit 2 ;;
esac
results=$(realpath "$1")
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0

# check WHAT COMMAND…: runs the command, and records whether it succeeded.
check() {
  local what=$1
  shift
  if timed "$what" "$@"; then
    echo "1 0 $what" >>"$results"
  else
    echo "0 1 $what" >>"$results"
    failed=1
  fi
}

train_on_cpu() {
  cat >"$folder/training.yaml" <<END
model: {layers: [{InputLayer: {batch_shape: [null, 1]}}, {Dense: {units: 1}}]}
loss: mean_squared_error
optimizer: {name: sgd, learning_rate: 0.1}
data:
  train: {format: linear, weights: [2.0], bias: 10.0, noise: 0.0, low: -1.0, high: 1.0, examples: 64}
batch_size: 8
max_steps: 20
model_dir: $folder/model
END
  "$trainer" --config="$folder/training.yaml" >"$folder/log" 2>&1 || { cat "$folder/log" && return 1; }
  grep -q "/device:CPU:0" "$folder/log" || { cat "$folder/log" && return 1; }
}

# Without a GPU, the self-test exits with 77 and says why. With a GPU, it must find no wrong result (0 or 3).
self_test() {
  local code=0
  "$trainer" --selftest=cuda >"$folder/selftest" 2>&1 || code=$?
  cat "$folder/selftest"
  if compgen -G "/dev/nvidia[0-9]*" >/dev/null; then [ $code = 0 ] || [ $code = 3 ]; else [ $code = 77 ]; fi
}

trainer=bazel-bin/runtime/cmd/tfjob-trainer
check "CUDA's compiler and libraries" deploy/dev/cuda.sh
check "the machine code of the kernels" deploy/dev/machine_code.py
check "the build with CUDA kernels" deploy/dev/bazel.py build --config=cuda --config=release //runtime/cmd:tfjob-trainer
check "training on the CPU with CUDA kernels" train_on_cpu
check "the self-test for GPUs" self_test
exit $failed
