#!/usr/bin/env bash
# Runs tests on real Kubernetes clusters, which deploy/dev/cluster.sh starts. --node needs root.
#
#   tests/cluster/run.sh [RESULTS] [--control-plane] [--node] [--faults]    default: all three
#
# --control-plane  runs the Bazel tests tagged "cluster", crd_test.py and reference_test.py with a
#                  control plane only, and gang_test.py with Kubernetes' own gang scheduling on
# --node           installs the operator as users do and applies deploy/examples; the pods train
# --faults         tests the operator while the API server is killed, stopped, restored or returns
#                  wrong responses, and while the operator's environment changes
#
# Appends "<passed> <failed> <what>" to the file RESULTS, and the output of failed tests to RESULTS.failures.
source "$(dirname "${BASH_SOURCE[0]}")/../../deploy/dev/lib.sh"

results=/dev/null parts=()
for argument in "$@"; do
  case $argument in
    --control-plane | --node | --faults) parts+=("${argument#--}") ;;
    -h | --help) sed -n '2,12s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" && exit ;;
    -*) echo "run.sh: unknown option $argument" >&2 && exit 2 ;;
    *) results=$(realpath "$argument") ;;
  esac
done
install_packages build test
[ ${#parts[@]} -gt 0 ] || parts=(control-plane node faults)

# TFJOB_TEST_KUBECONFIG determines the cluster that the Bazel tests use. These tests are also tagged
# "manual", so a plain `bazel test //...` skips them.
control_plane_tests() {
  local state targets status=0
  python_tests reference_test || status=1
  state=$(mktemp -d)
  deploy/dev/cluster.sh --state "$state" up --control-plane-only
  export TFJOB_TEST_KUBECONFIG=$state/admin.kubeconfig KUBECTL=$(cat "$state/programs")/kubectl
  python_tests crd_test || status=1
  "$KUBECTL" --kubeconfig "$TFJOB_TEST_KUBECONFIG" apply --server-side -f crds/kubeflow.org_tfjobs.yaml
  mapfile -t targets < <(bazel query 'attr(tags, "\bcluster\b", tests(//...))' 2>/dev/null)
  deploy/dev/bazel.py test "$results" --config=release --nocache_test_results --local_test_jobs=1 \
    --test_env=TFJOB_TEST_KUBECONFIG="$TFJOB_TEST_KUBECONFIG" "${targets[@]}" || status=1
  deploy/dev/cluster.sh --state "$state" down
  python_tests gang_test || status=1
  return $status
}

# python_tests NAME [SHARDS]: runs a test module in this folder, divided into shards that run in
# parallel, and appends the counts to the results.
python_tests() {
  local name=$1 shards=${2:-1} logs shard shard_pid running=() status=0
  logs=$(mktemp -d)
  for shard in $(seq "$shards"); do
    run_shard "$name" "$shard/$shards" "$logs/$shard" &
    running+=($!)
  done
  for shard_pid in "${running[@]}"; do wait "$shard_pid" || status=1; done
  if [ "$results" != /dev/null ]; then
    echo "$(count_unittests $status "$logs"/*) tests/cluster/$name" >>"$results"
    unittest_failures "$logs"/* >>"$results.failures"
  fi
  rm -rf "$logs"
  return $status
}

# run_shard NAME SHARD/SHARDS LOG: runs one shard, and copies its output to LOG. If there are
# several shards, each printed line starts with the shard.
run_shard() {
  TFJOB_SHARD=$2 PYTHONDONTWRITEBYTECODE=1 \
    /usr/bin/python3 -m unittest discover -s tests/cluster -p "$1.py" -v 2>&1 |
    sed -u "$([ "$2" = 1/1 ] || echo "s|^|$2: |")" | tee "$3"
}

status=0
for part in "${parts[@]}"; do
  case $part in
    control-plane) timed "tests against an API server" control_plane_tests || status=1 ;;
    node) timed "tests on a node" python_tests node_test || status=1 ;;
    faults) timed "tests with faults" python_tests faults_test 2 || status=1 ;;
  esac
done
exit $status
