# Builds the programs from the Go modules whose versions modules/go.mod pins. The programs go to a
# folder that is named after the hash of modules/. All programs belong to one module and therefore
# share compiled packages: Go compiles 3,257 packages instead of 4,249. Go's caches (3 GB) are kept
# next to the programs. With the caches, a build takes seconds; without them, 14 minutes of CPU time.
# Sourced by cluster.sh.
GO_VERSION=1.26.8
GO_SUM=h1:ZOmGe1OnfREDMIdb1Qi4G9JSuDPBLGExZMQ4nis1RXM=
GO_CACHE=$HOME/.cache/tfjob/go

PROGRAMS=$CACHE/bin-$(cat "$CLUSTER"/modules/{go.mod,go.sum,coredns/main.go} |
  sha256sum | cut -c1-12)

# Ensures that the Go in PATH is recent enough. If the machine's own Go is too old, uses it to
# download a newer one from the module proxy, where Go is published as a module. Debian's Go 1.19
# can do this.
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
    # Make the programs executable, which the files of a module are not. bin/* comes last, because
    # the check above looks at bin/go.
    chmod +x "$toolchain"/pkg/tool/*/* "$toolchain"/bin/*
  fi
  export PATH=$toolchain/bin:$PATH GOROOT=$toolchain
}

declare -A PACKAGES=([etcd]=go.etcd.io/etcd/server/v3 [kwok]=sigs.k8s.io/kwok/cmd/kwok [helm]=helm.sh/helm/v4/cmd/helm
  [coredns]=tfjob.dev/deploy/dev/cluster/modules/coredns)
for program in kube-{apiserver,controller-manager,scheduler,proxy} kubelet kubectl; do
  PACKAGES[$program]=k8s.io/kubernetes/cmd/$program
done

# install_programs NAME…: compiles and installs these programs.
install_programs() {
  local name packages=() version package=k8s.io/component-base/version
  for name in "$@"; do packages+=("${PACKAGES[$name]}"); done
  version=$(sed -n 's/^\tk8s.io\/kubernetes v\([^ ]*\).*/\1/p' "$CLUSTER/modules/go.mod")
  (cd "$CLUSTER/modules" && GOBIN=$PROGRAMS/building go install -mod=readonly -ldflags "-s -w -X $package.gitVersion=v$version \
    -X $package.gitMajor=1 -X $package.gitMinor=$(echo "$version" | cut -d. -f2) -X $package.gitTreeState=clean \
    -X $package.gitCommit=none" "${packages[@]}")
}

# Writes kwok-stages.yaml, which describes the behaviour of fake nodes and their pods, from parts
# that KWOK's release contains.
write_stages() {
  local stage folder
  folder=$(cd "$CLUSTER/modules" && go list -m -f '{{.Dir}}' sigs.k8s.io/kwok)/kustomize/stage
  for stage in node/fast/node-initialize node/heartbeat-with-lease/node-heartbeat-with-lease \
    pod/fast/pod-{ready,complete,delete}; do
    printf -- '---\n'
    cat "$folder/$stage.yaml"
  done >"$PROGRAMS/kwok-stages.yaml"
}

# missing NAME…: prints the names of the programs that are missing.
missing() {
  local name
  for name in "$@"; do [ -x "$PROGRAMS/$name" ] || echo "$name"; done
}

# build_programs [NAME…]: builds those of the given programs that are missing. The default is all programs.
build_programs() {
  local name names building=$PROGRAMS/building
  [ $# -gt 0 ] || set -- "${!PACKAGES[@]}"
  [ -n "$(missing "$@")" ] || return 0
  mkdir -p "$building"
  exec 8>"$building/lock"
  flock 8  # another process may be building
  mapfile -t names < <(missing "$@")
  if [ ${#names[@]} -gt 0 ]; then
    use_go
    timed "build ${names[*]}" install_programs "${names[@]}"
    # Go names a program after its package. etcd's package is called server.
    if [ -f "$building/server" ]; then mv "$building/server" "$building/etcd"; fi
    [ ! -f "$building/kwok" ] || write_stages
    for name in "${names[@]}"; do mv "$building/$name" "$PROGRAMS"; done
  fi
  exec 8>&-
}
