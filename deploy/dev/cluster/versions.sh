#!/usr/bin/env bash
# Rewrites {kubernetes,extras}/go.{mod,sum} for other versions of the programs. Not needed
# to build them.
#
#   KUBERNETES=1.36.3 deploy/dev/cluster/versions.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
source "$CLUSTER/build.sh"

KUBERNETES=${KUBERNETES:-1.36.3} ETCD=${ETCD:-3.6.8} KWOK=${KWOK:-0.8.0} HELM=${HELM:-4.2.4} COREDNS=${COREDNS:-1.14.7}

# Kubernetes' own go.mod names its libraries by folders of its repository. From outside, each is a
# separate module.
use_go
upstream=$(go mod download -json "k8s.io/kubernetes@v$KUBERNETES" | sed -n 's/^\t"GoMod": "\(.*\)",$/\1/p')
libraries=$(sed -n '/^replace (/,/^)/s/^\t\(.*\) => .\/staging.*/\1/p' "$upstream")

# module FOLDER REQUIREMENTS TOOLS
module() {
  local library requirement tool
  cd "$CLUSTER/$1"
  rm -f go.mod go.sum
  go mod init "tfjob.dev/deploy/dev/cluster/$1"
  go mod edit -go="$(sed -n 's/^go //p' "$upstream")"
  for library in $libraries; do go mod edit -replace="$library=$library@v0.${KUBERNETES#1.}"; done
  for requirement in $2; do go mod edit -require="$requirement"; done
  for tool in $3; do go mod edit -tool="$tool"; done
  go mod tidy
}

module kubernetes "k8s.io/kubernetes@v$KUBERNETES go.etcd.io/etcd/server/v3@v$ETCD" \
  "go.etcd.io/etcd/server/v3 $(printf 'k8s.io/kubernetes/cmd/%s ' kube-apiserver kube-controller-manager kube-scheduler \
    kube-proxy kubelet kubectl)"
module extras "sigs.k8s.io/kwok@v$KWOK helm.sh/helm/v4@v$HELM github.com/coredns/coredns@v$COREDNS" \
  "sigs.k8s.io/kwok/cmd/kwok helm.sh/helm/v4/cmd/helm tfjob.dev/deploy/dev/cluster/extras/coredns"
