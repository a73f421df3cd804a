#!/usr/bin/env bash
# Runs the tests on a real Kubernetes cluster started by deploy/dev/cluster.sh. --node needs root.
#
#   tests/cluster/run.sh [RESULTS] [--control-plane] [--node] [--faults]    default: all three
#
# --control-plane  Bazel tests tagged "cluster", crd_test.py and reference_test.py, against etcd,
#                  API server and controllers only; gang_test.py, with Kubernetes' own gangs enabled
# --node           installs the operator by Helm and deploy/examples by kubectl; the pods train
# --faults         the operator while the API server is killed, stopped, restored or misled and its
#                  surroundings change
#
# Appends "<passed> <failed> <what>" to the file RESULTS.
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

# TFJOB_TEST_KUBECONFIG names the cluster for the Bazel targets. They are also tagged "manual", so
# that a plain `bazel test //...` skips them.
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

# python_tests NAME: runs a test module of this folder.
python_tests() {
  local log ran bad status=0
  log=$(mktemp)
  PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 -m unittest discover -s tests/cluster -p "$1.py" -v 2>&1 | tee "$log" || status=1
  ran=$(sed -n 's/^Ran \([0-9]*\) tests\{0,1\} .*/\1/p' "$log")
  bad=$(sed -n 's/^FAILED (\(.*\))$/\1/p' "$log" | tr ',' '\n' | sed -n 's/.*\(failures\|errors\)=//p' | awk '{n += $1} END {print n + 0}')
  [ $status -eq 0 ] || [ "$bad" -gt 0 ] || bad=1
  [ "$bad" -le "${ran:-0}" ] || ran=$bad
  echo "$((${ran:-0} - bad)) $bad tests/cluster/$1" >>"$results"
  rm -f "$log"
  return $status
}

status=0
for part in "${parts[@]}"; do
  case $part in
    control-plane) timed "tests against an API server" control_plane_tests || status=1 ;;
    node) timed "tests on a node" python_tests node_test || status=1 ;;
    faults) timed "tests with faults" python_tests faults_test || status=1 ;;
  esac
done
exit $status
