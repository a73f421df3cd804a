#!/usr/bin/env bash
# Renders deploy/tfjob-operator.yaml and deploy/kustomize/base/operator.yaml from the chart with
# helm.
#
#   deploy/dev/render.sh            rewrites them
#   deploy/dev/render.sh --check    checks that they are current and changes nothing
#
# HELM may name the helm program. The default is helm in PATH, or else the one that
# `deploy/dev/cluster.sh bin helm` builds.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

helm=${HELM:-$(command -v helm || echo "$(deploy/dev/cluster.sh bin helm)/helm")}
base=deploy/kustomize/base/operator.yaml
whole=deploy/tfjob-operator.yaml

# Renders the chart with its default values and prints the result without the parts that only Helm
# needs: Helm's labels and hooks, the annotation that keeps the CRD, and the names of templates.
render() {
  "$helm" template tfjob-operator charts/tfjob-operator --namespace tfjob-system --no-hooks --set crds.keep=false |
    sed -e '/^ *helm\.sh\/chart: /d' -e '/^ *app\.kubernetes\.io\/managed-by: Helm$/d' -e '/^# Source: /d'
}

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
render >"$folder/rendered"
{
  echo "# Made from charts/tfjob-operator: deploy/dev/render.sh"
  cat "$folder/rendered"
} >"$folder/base"
{
  echo "# Made from charts/tfjob-operator: deploy/dev/render.sh"
  echo "# kubectl apply --server-side -f deploy/tfjob-operator.yaml"
  cat deploy/kustomize/overlays/standalone/namespace.yaml "$folder/rendered"
} >"$folder/whole"

if [ "${1:-}" = --check ]; then
  cmp "$folder/base" $base && cmp "$folder/whole" $whole && exit
  echo "stale: deploy/dev/render.sh" >&2
  exit 1
fi
cp "$folder/base" $base
cp "$folder/whole" $whole
