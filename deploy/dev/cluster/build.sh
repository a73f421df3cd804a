# The programs: built from the modules that kubernetes/go.mod and extras/go.mod pin, into a folder that is named after
# them. Go's own caches stay beside it (3 GB): without them a build takes 14 minutes of CPU time, with them seconds.
# Sourced by cluster.sh.
GO_VERSION=1.26.8
GO_SUM=h1:ZOmGe1OnfREDMIdb1Qi4G9JSuDPBLGExZMQ4nis1RXM=
GO_CACHE=$HOME/.cache/tfjob/go

PROGRAMS=$CACHE/bin-$(cat "$CLUSTER"/{kubernetes,extras}/go.{mod,sum} "$CLUSTER"/extras/coredns/main.go |
  sha256sum | cut -c1-12)

# Puts a Go that is new enough into PATH: the machine's, or one out of the module proxy, where Go publishes itself as a
# module; Debian's Go 1.19 is able to fetch it.
use_go() {
  export GOMODCACHE=$GO_CACHE/mod GOCACHE=$GO_CACHE/build GOTOOLCHAIN=local GOWORK=off CGO_ENABLED=0
  export GOFLAGS="-trimpath -buildvcs=false -modcacherw"
  local found toolchain=$GOMODCACHE/golang.org/toolchain@v0.0.1-go$GO_VERSION.linux-amd64
  found=$(go env GOVERSION 2>/dev/null || true)
  if printf 'go%s\n' 1.26 "${found#go}" | sort -V -C; then return; fi
  if [ ! -x "$toolchain/bin/go" ]; then
    command -v go >/dev/null || install_packages go
    (cd / && go mod download -json "golang.org/toolchain@${toolchain#*@}") | grep -qF "\"Sum\": \"$GO_SUM\"" ||
      fail "Go $GO_VERSION from the module proxy is not the one that is expected"
    chmod +x "$toolchain"/pkg/tool/*/* "$toolchain"/bin/*  # a module's files are not executable; bin/go last
  fi
  export PATH=$toolchain/bin:$PATH GOROOT=$toolchain
}

# Where each program comes from: the module's folder and the package.
declare -A PACKAGES=([etcd]="kubernetes go.etcd.io/etcd/server/v3" [kwok]="extras sigs.k8s.io/kwok/cmd/kwok"
  [helm]="extras helm.sh/helm/v4/cmd/helm" [coredns]="extras tfjob.dev/deploy/dev/cluster/extras/coredns")
for program in kube-{apiserver,controller-manager,scheduler,proxy} kubelet kubectl; do
  PACKAGES[$program]="kubernetes k8s.io/kubernetes/cmd/$program"
done

# install_module FOLDER NAME…: those of the programs that this module has.
install_module() {
  local folder=$1 name packages=() version package=k8s.io/component-base/version
  shift
  for name in "$@"; do
    if [ "${PACKAGES[$name]% *}" = "$folder" ]; then packages+=("${PACKAGES[$name]#* }"); fi
  done
  [ ${#packages[@]} -gt 0 ] || return 0
  version=$(sed -n 's/^\tk8s.io\/kubernetes v\([^ ]*\).*/\1/p' "$CLUSTER/kubernetes/go.mod")
  (cd "$CLUSTER/$folder" && GOBIN=$PROGRAMS/building go install -mod=readonly -ldflags "-s -w -X $package.gitVersion=v$version \
    -X $package.gitMajor=1 -X $package.gitMinor=$(echo "$version" | cut -d. -f2) -X $package.gitTreeState=clean \
    -X $package.gitCommit=none" "${packages[@]}")
}

# How fake nodes and their pods behave, as KWOK's release has it.
write_stages() {
  local stage folder
  folder=$(cd "$CLUSTER/extras" && go list -m -f '{{.Dir}}' sigs.k8s.io/kwok)/kustomize/stage
  for stage in node/fast/node-initialize node/heartbeat-with-lease/node-heartbeat-with-lease \
    pod/fast/pod-{ready,complete,delete}; do
    printf -- '---\n'
    cat "$folder/$stage.yaml"
  done >"$PROGRAMS/kwok-stages.yaml"
}

# missing NAME…: those that are not there.
missing() {
  local name
  for name in "$@"; do [ -x "$PROGRAMS/$name" ] || echo "$name"; done
}

# build_programs [NAME…]: those that are not there yet; of all without a name.
build_programs() {
  local name names building=$PROGRAMS/building
  [ $# -gt 0 ] || set -- "${!PACKAGES[@]}"
  [ -n "$(missing "$@")" ] || return 0
  mkdir -p "$building"
  exec 8>"$building/lock"
  flock 8  # others may be at it
  mapfile -t names < <(missing "$@")
  if [ ${#names[@]} -gt 0 ]; then
    use_go
    timed "build ${names[*]} (out of Kubernetes' module)" install_module kubernetes "${names[@]}"
    timed "build ${names[*]} (out of others)" install_module extras "${names[@]}"
    if [ -f "$building/server" ]; then mv "$building/server" "$building/etcd"; fi  # its module's last word
    [ ! -f "$building/kwok" ] || write_stages
    for name in "${names[@]}"; do mv "$building/$name" "$PROGRAMS"; done
  fi
  exec 8>&-
}
