#!/usr/bin/env bash
# Trains Fashion-MNIST from a TFJob manifest on this machine: installs missing packages, builds the
# programs, and runs deploy/examples/fashion-mnist.yaml (chief, two workers, two parameter servers,
# an evaluator) as local processes.
#
#   deploy/quickstart.sh [arguments for `tfjob run`, for example --follow]
#
# Afterwards the programs are bazel-bin/operator/cli/tfjob and bazel-bin/runtime/cmd/tfjob-trainer.
case ${1:-} in
  -h | --help) sed -n '2,8s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" && exit ;;
esac
source "$(dirname "${BASH_SOURCE[0]}")/dev/lib.sh"

timed "packages" install_packages
timed "build" deploy/dev/bazel.py build --config=release //operator/cli:tfjob //runtime/cmd:tfjob-trainer
timed "train" bazel-bin/operator/cli/tfjob run deploy/examples/fashion-mnist.yaml "$@"
