#!/usr/bin/env bash
# Tests the chart with helm. Lints the chart, compares its output for several sets of values with
# golden files, and checks that it refuses invalid values. Also checks that the rendered manifests
# are up to date, and that kubectl can build the kustomizations.
#
#   tests/charts/run.sh [RESULTS]    appends "<passed> <failed> <what>" to the file RESULTS
#   tests/charts/run.sh --update     rewrites the golden files and the rendered manifests
#
# HELM and KUBECTL may contain the paths of the programs. The defaults are the programs in PATH, or
# else those that `deploy/dev/cluster.sh bin helm kubectl` builds.
source "$(dirname "${BASH_SOURCE[0]}")/../../deploy/dev/lib.sh"

program() { command -v "$1" || echo "$(deploy/dev/cluster.sh bin "$1")/$1"; }
HELM=${HELM:-$(program helm)}
KUBECTL=${KUBECTL:-$(program kubectl)}
export HELM KUBECTL
CHART=charts/tfjob-operator
GOLDEN=tests/charts/golden
folder=$(mktemp -d)
mkdir "$folder/api"
coproc STUB { exec python3 tests/charts/api_stub.py "$folder/api"; }
stub=$STUB_PID
trap 'kill $stub; rm -rf "$folder"' EXIT
read -r port <&"${STUB[0]}"
export HELM_CACHE_HOME=$folder/cache HELM_CONFIG_HOME=$folder/config HELM_DATA_HOME=$folder/data

passed=0 failed=0
check() {
  local what=$1
  shift
  if "$@" >"$folder/log" 2>&1; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "failed: $what"
    tail -n 40 "$folder/log"
  fi
}

render() { "$HELM" template release $CHART --namespace somewhere "$@"; }

# refused REGEX FLAG…: checks that helm fails with these flags and that its output matches REGEX.
refused() {
  local words=$1
  shift
  ! render "$@" >"$folder/refused" 2>&1 && grep -q -- "$words" "$folder/refused" || { cat "$folder/refused" && false; }
}

golden() {
  local name=$1
  shift
  # Leave out the CRD, which //operator/crd:crd_test compares with its source.
  render "$@" | sed -e '/^# Source: .*crd.yaml/,/^---$/d' >"$folder/$name.yaml"
  if [ -n "${update:-}" ]; then cp "$folder/$name.yaml" "$GOLDEN/$name.yaml"; fi
  diff -u "$GOLDEN/$name.yaml" "$folder/$name.yaml"
}

# well_formed RELEASE NAMESPACE FLAG…: checks the keys and names of the rendered manifests.
well_formed() {
  local release=$1 namespace=$2
  shift 2
  "$HELM" template "$release" $CHART --namespace "$namespace" --set crds.enabled=false "$@" |
    python3 tests/charts/yaml_keys.py
}
# Set all names that a user can choose to values that look like numbers.
numeric_names() {
  well_formed "$1" "$2" --set-string "fullnameOverride=$1,nameOverride=$1,serviceAccount.name=$1" \
    --set-string "manager.priorityClassName=$1,namespaces={$2}" \
    --set-string "image.registry=,image.repository=$1,image.tag=2,jobKey.existingSecret=$1" \
    --set metrics.serviceMonitor.enabled=true,podDisruptionBudget.enabled=true,networkPolicy.enabled=true
}

has_definition() { render "$@" | grep -q '^kind: CustomResourceDefinition'; }

# install FLAG…: renders the Secret with the operator's keys as `helm install` and `helm upgrade` do. Both commands look
# for an existing Secret in the cluster. api_stub.py simulates the cluster, and the file secret.json is the existing
# Secret.
install() {
  render --dry-run=server --disable-openapi-validation --kube-apiserver "http://127.0.0.1:$port" \
    --show-only templates/jobkey.yaml "$@"
}
# 32 random bytes have 44 digits in base64.
makes_a_key() {
  install "$@" | grep -q '^  "1": [A-Za-z0-9+/]\{43\}=$' && install "$@" | grep -q 'resource-policy: keep$' &&
    install "$@" | grep -q 'helm.sh/hook: pre-install,pre-upgrade$'
}
# Hooks are not part of the release's manifest. Unless a hook has a deletion policy, Helm deletes the hook's object
# before it runs the hook again.
keeps_keys_out_of_the_manifest() {
  ! install --no-hooks >"$folder/refused" 2>&1 && grep -q 'could not find template' "$folder/refused" &&
    install | grep -q 'hook-delete-policy: hook-failed$'
}
makes_another_key() { [ "$(install | sed -n 's/^  "1": //p')" != "$(install | sed -n 's/^  "1": //p')" ]; }
# secret RELEASE: makes api_stub.py serve a Secret of this release with two keys. A user has added the key 2.
secret() {
  echo '{"kind": "Secret", "apiVersion": "v1", "data": {"1": "b2xk", "2": "bmV3"}, "metadata": {"name": "keys",
    "labels": {"app.kubernetes.io/managed-by": "Helm"}, "annotations": {"meta.helm.sh/release-name": "'"$1"'",
    "meta.helm.sh/release-namespace": "somewhere"}}}' >"$folder/api/secret.json"
}
leaves_the_keys() {
  secret release && ! install >"$folder/refused" 2>&1 && grep -q 'could not find template' "$folder/refused"
}
# notes FLAG…: prints the notes that `helm install` shows without access to a cluster.
notes() { "$HELM" install release $CHART --namespace somewhere --dry-run=client "$@" | sed -n '/^NOTES:/,$p'; }
# notes_in_cluster FLAG…: prints the notes that `helm install` shows with access to a cluster.
notes_in_cluster() {
  "$HELM" install release $CHART --namespace somewhere --dry-run=server --disable-openapi-validation \
    --kube-apiserver "http://127.0.0.1:$port" "$@" | sed -n '/^NOTES:/,$p'
}
tells_of_the_hook() {
  rm -f "$folder/api/secret.json"
  notes_in_cluster --no-hooks |
    grep -q 'A hook creates the Secret release-tfjob-operator-job-keys .* unless hooks are disabled'
}
tells_how_to_make() { notes "${@:2}" | grep -q "openssl rand 32 | kubectl create secret generic $1 -n somewhere"; }
tells_that_there_are_none() { notes --set jobKey.create=false | grep -q 'Jobs get no keys (jobKey.create is false)'; }
leaves_a_strangers() {
  secret other && ! install >"$folder/refused" 2>&1 && grep -q 'set jobKey.existingSecret=' "$folder/refused"
}
# The manifests that Argo CD and `helm template` render must not change a key, so these manifests contain no Secret.
contains_no_secret() { ! render "$@" | grep -n '^kind: Secret' && cmp <(render "$@") <(render "$@"); }

# rotates: runs the command in docs/SECURITY.md that adds a key, but without a cluster, and checks that both keys exist
# afterwards.
rotates() {
  local file=$folder/rotated.yaml command
  printf '{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "keys"}, "data": {"1": "b2xk"}}\n' >"$file"
  command=$(sed -n '/^ *printf .data: /,/^ *```$/p' docs/SECURITY.md | sed '/```/d')
  command=${command/kubectl -n tfjob-system patch secret tfjob-operator-job-keys/\"$KUBECTL\" patch --local -f \"$file\" -o yaml}
  bash -c "$command" >"$folder/patched" && grep -q '^  "1": b2xk$' "$folder/patched" &&
    grep -q '^  "2": [A-Za-z0-9+/]\{43\}=$' "$folder/patched"
}

builds() { "$KUBECTL" kustomize "$1" | grep -q '^kind: Deployment'; }
moved() { ! "$KUBECTL" kustomize deploy/kustomize/overlays/kubeflow | grep -n tfjob-system; }

if [ "${1:-}" = --update ]; then
  update=yes
  shift
  deploy/dev/render.sh
fi

check "lint" "$HELM" lint --strict $CHART
check "golden default" golden default
for values in "$CHART"/ci/*-values.yaml; do
  name=$(basename "$values" -values.yaml)
  check "lint $name" "$HELM" lint --strict $CHART --values "$values"
  check "golden $name" golden "$name" --values "$values"
done
check "the definition is part of the release" has_definition
check "the definition can be left out" eval '! has_definition --set crds.enabled=false'
check "an unknown value" refused "additional properties 'replica'\|Additional property replica" --set manager.replica=2
check "a value of another type" refused "manager.replicas\|/manager/replicas" --set manager.replicas=two
check "a word that is none" refused "defaultCleanPodPolicy" --set manager.config.defaultCleanPodPolicy=Some
check "a word that is no choice of jobs" refused "networkPolicies" --set jobs.networkPolicies=some
check "a burst of none, which the operator refuses" refused "burst" --set manager.config.clientConnection.burst=0
check "two operators without a lease" refused "leaderElect" --set manager.replicas=2 \
  --set manager.config.leaderElection.leaderElect=false
check "manifests are well-formed" well_formed release somewhere
check "labels and annotations that are set twice" well_formed release somewhere \
  --values "$CHART/ci/everything-values.yaml"
check "names that are numbers" numeric_names 123 456
check "names that are floating-point numbers" numeric_names 1e3 2e4
check "names that are dates" numeric_names 2026-11-28 2026-11-29
for key in commonLabels manager.labels manager.podLabels metrics.serviceMonitor.labels; do
  check "$key that selectors use" refused 'app.kubernetes.io/name' --set "$key.app\.kubernetes\.io/name=mine"
done
check "permissions for a service account without a name" refused "serviceAccount.name" --set serviceAccount.create=false
check "no permissions for a service account without a name" render --set serviceAccount.create=false \
  --set rbac.create=false
check "a new installation makes a key" makes_a_key
check "a new installation without ClusterRoles makes a key" makes_a_key --set rbac.create=false
check "every installation makes another key" makes_another_key
check "the release's manifest contains no key" keeps_keys_out_of_the_manifest
check "an upgrade leaves the keys" leaves_the_keys
check "a Secret of somebody else stays as it is" leaves_a_strangers
rm -f "$folder/api/secret.json"
check "a rendered manifest contains no key" contains_no_secret
check "a rendered manifest for a Secret of one's own contains none" contains_no_secret --set jobKey.existingSecret=mine
check "an installation with a Secret of one's own makes none" eval '! install --set jobKey.existingSecret=mine'
check "the notes say how to make the Secret" tells_how_to_make release-tfjob-operator-job-keys
check "the notes say how to make a Secret of one's own" tells_how_to_make mine --set jobKey.existingSecret=mine
check "the notes say that jobs get no keys" tells_that_there_are_none
check "the notes say that a hook makes the Secret" tells_of_the_hook
check "the command for a rotation adds a key" rotates
check "a name that is none" refused "existingSecret" --set jobKey.existingSecret=A_B
check "rendered manifests are current" deploy/dev/render.sh --check
check "kustomize standalone" builds deploy/kustomize/overlays/standalone
check "kustomize kubeflow" builds deploy/kustomize/overlays/kubeflow
check "kustomize kubeflow leaves no other namespace" moved

echo "$passed passed, $failed failed: tests/charts"
[ $# -eq 0 ] || echo "$passed $failed tests/charts" >>"$1"
[ $failed -eq 0 ]
