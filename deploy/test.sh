#!/usr/bin/env bash
# Builds and runs the tests, and ends with the line "N passed, N failed".
#
#   deploy/test.sh          every test that needs no cluster and no GPU, in the configuration that ships
#   deploy/test.sh --all    every test with the address and undefined behaviour sanitizers, and those of packages with
#                           threads also with the thread sanitizer; every fuzzer for some seconds; in the configuration
#                           that ships, whole jobs and the tests of packages whose code differs in it; tests/charts
#                           (Helm chart), tests/interop (TensorFlow and TensorBoard from PyPI), tests/cluster
#                           (Kubernetes; needs root)
#   deploy/test.sh --deep   the same as --all, tests/install (the installed C++ library), and long runs: every fuzzer
#                           for minutes, the examples that take minutes, the quickstart with ten seeds, hundreds of
#                           jobs whose tasks are killed, stopped and cut off at random times, whole jobs under the
#                           sanitizers, every test ten times, the build with CUDA kernels, mutants of these kernels,
#                           benchmarks
source "$(dirname "${BASH_SOURCE[0]}")/dev/lib.sh"

level=plain
case "${1:-}" in
  "") ;;
  --all) level=all ;;
  --deep) level=deep ;;
  -h | --help) sed -n '2,15s/^# \{0,1\}//p' deploy/test.sh; exit 0 ;;
  *) echo "unknown argument $1; try --help" >&2; exit 2 ;;
esac

# The packages that use threads. The state machines of runtime/ps/protocol use none. The emulator of CUDA kernels runs
# them on fibers, which the thread sanitizer cannot follow.
THREADED=(//runtime/base/... //runtime/wire/... //runtime/rpc/... //runtime/ps/... //runtime/data/...
  //runtime/collectives/... //runtime/device/... //runtime/exec/... //runtime/strategy/... //runtime/train/...
  //runtime/progress/... //runtime/api/... //tests/api/... //operator/control/... //operator/events/...
  //operator/kube/... //operator/local/... //operator/metrics/... //operator/serve/...
  -//runtime/ps/protocol/... -//runtime/exec:cuda_program_test -//runtime/strategy:cuda_loss_scaling_test
  -//runtime/strategy:late_device_test)

# The kernels, layouts or arithmetic of these packages depend on the configuration, so --all also
# tests them in the configuration that ships. The simulation runs more seeds there than under the
# sanitizers, and a test that measures memory runs only there. All other tests run only under the sanitizers.
SHIPPED=(//tests/processes/... //tests/numerics/... //runtime/tensor/... //runtime/kernels/... //runtime/optimizer/...
  //runtime/exec/... //runtime/io/... //runtime/base/... //tests/simulation/... //runtime/train:table_memory_test)

RESULTS=$(mktemp)
cluster_programs=""
trap 'rm -f "$RESULTS"{,.failures,.times,.programs}; [ -z "$cluster_programs" ] || kill -- "-$cluster_programs"' EXIT
failed_steps=()

# step WHAT COMMAND…: runs the command. If the command fails, records the failure and continues.
step() {
  timed "$@" || failed_steps+=("$1")
}

bazel_tests() { deploy/dev/bazel.py test "$RESULTS" "$@"; }

# Starts to build the programs of the test cluster, which takes minutes. The build has the lowest priority, so it uses
# only processor time that the tests do not need. A kernel that groups processes by session for scheduling (autogroup)
# compares the priorities of processes only within a session. Therefore, the build runs in a separate session, and the
# whole session gets the lowest priority.
start_cluster_programs() {
  # shellcheck disable=SC2016
  setsid bash -c 'echo 19 >/proc/$$/autogroup; exec nice -n 19 deploy/dev/cluster.sh bin' \
    </dev/null >"$RESULTS.programs" 2>&1 &
  cluster_programs=$!
}

await_cluster_programs() {
  local status=0
  {
    echo 0 >"/proc/$cluster_programs/autogroup"
    renice -n 0 -g "$cluster_programs" >/dev/null
  } 2>/dev/null || true  # fails without root, or if the build has ended
  wait "$cluster_programs" || status=$?
  cluster_programs=""
  cat "$RESULTS.programs"
  return $status
}

[ $level != deep ] || export TFJOB_DEEP=1
timed "packages" install_packages build test
[ $level = plain ] || start_cluster_programs
step "style, sizes and rooms" deploy/dev/check.sh
if [ $level = plain ]; then
  step "tests" bazel_tests --config=release //...
else
  step "tests of what ships" bazel_tests --config=release "${SHIPPED[@]}"
  step "the benchmarks, which no test builds" deploy/dev/bazel.py build --config=release //tests/bench/...
  step "tests with the address and undefined sanitizers" bazel_tests --config=sanitize --build_tests_only //...
  step "tests with the thread sanitizer" bazel_tests --config=tsan --build_tests_only -- "${THREADED[@]}"
  step "fuzzing" tests/fuzz/run.sh --results "$RESULTS" --seconds $([ $level = deep ] && echo 180 || echo 5)
  step "the programs of the test cluster" await_cluster_programs
  step "the chart" tests/charts/run.sh "$RESULTS"
  if [ -x tests/interop/run.sh ]; then step "TensorFlow and TensorBoard" tests/interop/run.sh "$RESULTS"; fi
  step "a Kubernetes cluster" tests/cluster/run.sh "$RESULTS"
fi
if [ $level = deep ]; then
  step "the installed library" tests/install/run.sh "$RESULTS"
  step "examples that take minutes" bazel_tests --config=release //tests/processes:examples_deep_test
  step "the quickstart's accuracy with ten seeds" \
    bazel_tests --config=release --test_output=streamed //tests/processes:seeds_test
  step "tasks killed and stopped at random times" \
    bazel_tests --config=release --test_output=streamed //tests/processes:random_faults_deep_test
  step "tasks of groups killed and stopped at random times" \
    bazel_tests --config=release --test_output=streamed //tests/processes:group_faults_deep_test
  step "tasks of groups cut off from the network at random times" \
    bazel_tests --config=release --test_output=streamed //tests/processes:network_faults_deep_test
  step "the examples that jobs with faults use" \
    bazel_tests --config=release --test_output=streamed //tests/processes:exactly_once_deep_test
  step "whole jobs with the address and undefined sanitizers" \
    bazel_tests --config=sanitize --test_tag_filters=whole_job //tests/processes/...
  step "every test as it ships, ten times each" bazel_tests --config=release --runs_per_test=10 //...
  step "the build with CUDA kernels" deploy/dev/cuda_check.sh "$RESULTS"
  step "mutants of the CUDA kernels" tests/mutation/run.py --results "$RESULTS" --minutes 60
  step "benchmarks" tests/bench/run.sh
fi

# Each line of the results is "<passed> <failed> <what>". The number of failures reported is at least the
# number of failed steps, because a step may fail without a failed test.
passed=$(awk '{n += $1} END {print n + 0}' "$RESULTS")
failed=$(awk '{n += $2} END {print n + 0}' "$RESULTS")
[ "$failed" -ge ${#failed_steps[@]} ] || failed=${#failed_steps[@]}
if [ -s "$RESULTS.times" ]; then
  say "the slowest compilations and tests"
  sort -rn "$RESULTS.times" | awk 'NR <= 20 {printf "%7.1f s %s\n", $1, substr($0, index($0, $2))}'
fi
if [ -s "$RESULTS.failures" ]; then
  say "why tests failed"
  tail -n 100 "$RESULTS.failures"
fi
awk '$2 > 0 {print "failed: " substr($0, index($0, $3))}' "$RESULTS"
for failed_step in "${failed_steps[@]}"; do echo "failed: $failed_step"; done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
