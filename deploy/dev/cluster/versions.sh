#!/usr/bin/env bash
# Rewrites modules/go.mod and modules/go.sum for other versions of the programs. A build does not
# need this script.
#
#   KUBERNETES=1.36.3 deploy/dev/cluster/versions.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
source "$CLUSTER/build.sh"

KUBERNETES=${KUBERNETES:-1.36.3} ETCD=${ETCD:-3.6.13} KWOK=${KWOK:-0.8.0} HELM=${HELM:-4.2.4} COREDNS=${COREDNS:-1.14.7}

# In Kubernetes' own go.mod, folders of its repository replace the libraries. Outside that
# repository, each library is a separate module.
use_go
upstream=$(go mod download -json "k8s.io/kubernetes@v$KUBERNETES" | sed -n 's/^\t"GoMod": "\(.*\)",$/\1/p')
libraries=$(sed -n '/^replace (/,/^)/s/^\t\(.*\) => .\/staging.*/\1/p' "$upstream")

cd "$CLUSTER/modules"
rm -f go.mod go.sum
go mod init tfjob.dev/deploy/dev/cluster/modules
go mod edit -go="$(sed -n 's/^go //p' "$upstream")"
for library in $libraries; do go mod edit -replace="$library=$library@v0.${KUBERNETES#1.}"; done
for module in "k8s.io/kubernetes@v$KUBERNETES" "go.etcd.io/etcd/server/v3@v$ETCD" "sigs.k8s.io/kwok@v$KWOK" \
  "helm.sh/helm/v4@v$HELM" "github.com/coredns/coredns@v$COREDNS"; do
  go mod edit -require="$module"
done
for package in "${PACKAGES[@]}"; do go mod edit -tool="$package"; done
go mod tidy
