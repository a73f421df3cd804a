#!/usr/bin/env bash
# Tests the chart with helm. Lints the chart, compares its output for several sets of values with
# golden files, and checks that it refuses invalid values. Also checks that the rendered manifests
# are current and that kubectl can build the kustomizations.
#
#   tests/charts/run.sh [RESULTS]    appends "<passed> <failed> <what>" to the file RESULTS
#   tests/charts/run.sh --update     rewrites the golden files and the rendered manifests
#
# HELM and KUBECTL may name the programs. The defaults are those in PATH, or else in
# `deploy/dev/cluster.sh bin`.
source "$(dirname "${BASH_SOURCE[0]}")/../../deploy/dev/lib.sh"

program() { command -v "$1" || echo "$(deploy/dev/cluster.sh bin)/$1"; }
HELM=${HELM:-$(program helm)}
KUBECTL=${KUBECTL:-$(program kubectl)}
export HELM KUBECTL
CHART=charts/tfjob-operator
GOLDEN=tests/charts/golden
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
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
  # Leaves out the CRD, which //operator/crd:crd_test compares with its source.
  render "$@" | sed -e '/^# Source: .*crd.yaml/,/^---$/d' >"$folder/$name.yaml"
  if [ -n "${update:-}" ]; then cp "$folder/$name.yaml" "$GOLDEN/$name.yaml"; fi
  diff -u "$GOLDEN/$name.yaml" "$folder/$name.yaml"
}

has_definition() { render "$@" | grep -q '^kind: CustomResourceDefinition'; }

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
check "rendered manifests are current" deploy/dev/render.sh --check
check "kustomize standalone" builds deploy/kustomize/overlays/standalone
check "kustomize kubeflow" builds deploy/kustomize/overlays/kubeflow
check "kustomize kubeflow leaves no other namespace" moved

echo "$passed passed, $failed failed: tests/charts"
[ $# -eq 0 ] || echo "$passed $failed tests/charts" >>"$1"
[ $failed -eq 0 ]
