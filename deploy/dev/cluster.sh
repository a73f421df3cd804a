#!/usr/bin/env bash
# Runs a Kubernetes cluster on this machine for development and tests: etcd, the API server, the
# controllers and the scheduler; this machine as a node with real pods, DNS and services; fake nodes
# (KWOK) for thousands of pods. Installs missing programs from Debian packages and Go modules only.
#
#   deploy/dev/cluster.sh up [--control-plane-only] [--fake-nodes N]    (the node needs root)
#     [--feature-gates GATE=true,…] [--runtime-config API=true,…]    (same syntax as in Kubernetes)
#                          starts the components that are not running; returns when all are ready
#   deploy/dev/cluster.sh down           stops the cluster; removes its files, except the programs
#   deploy/dev/cluster.sh status         lists the components
#   deploy/dev/cluster.sh load-image FILE…   loads images (OCI or docker archives) into the node
#   deploy/dev/cluster.sh kubeconfig     prints the path of the administrator's kubeconfig
#   deploy/dev/cluster.sh bin [PROGRAM…]     builds helm, kubectl, etcd, … (default: all); prints their folder
#
# --state FOLDER (before or after the verb) selects another cluster. Several control planes can run
# at once, on different ports; a machine has only one node. See docs/development.md.
usage() { sed -n '2,16s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; }

verb="" fake_nodes=0 node=yes feature_gates="" runtime_config="" arguments=()
while (($#)); do
  case $1 in
    --control-plane-only) node=no ;;
    --fake-nodes) fake_nodes=${2-} && shift ;;
    --feature-gates) feature_gates=${2-} && shift ;;
    --runtime-config) runtime_config=${2-} && shift ;;
    --state) mkdir -p "${2-}" && STATE=$(realpath "$2") && shift ;;
    -h | --help) usage && exit ;;
    -*) echo "cluster.sh: unknown option $1; try --help" >&2 && exit 2 ;;
    *)
      case $verb in
        "") verb=$1 ;;
        load-image) arguments+=("$(realpath "$1")") ;;  # lib.sh changes the current folder
        bin) arguments+=("$1") ;;
        *) echo "cluster.sh: \"$verb\" takes no argument \"$1\"; try --help" >&2 && exit 2 ;;
      esac
      ;;
  esac
  shift
done
if [[ ! $fake_nodes =~ ^[0-9]+$ ]]; then echo "cluster.sh: --fake-nodes wants a number, not \"$fake_nodes\"" >&2 && exit 2; fi

source "$(dirname "${BASH_SOURCE[0]}")/cluster/lib.sh"
for part in build pki control_plane node; do source "$CLUSTER/$part.sh"; done

# The components that may run, in the order in which they are stopped.
COMPONENTS=(kwok coredns kube-proxy kubelet kube-scheduler kube-controller-manager kube-apiserver etcd)

# Records the options of the first `up`. A later `up` can only add fake nodes.
settle() {
  mkdir -p "$STATE"
  if [ -f "$STATE/node" ]; then
    [ $node = "$(cat "$STATE/node")" ] || fail "the cluster in $STATE was made $([ $node = no ] || echo not) to have a node"
  fi
  if [ $node = yes ]; then
    [ "$(id -u)" -eq 0 ] || fail "a node needs root; --control-plane-only does not"
    mkdir -p "$RUN"
    [ "$(cat "$RUN/state" 2>/dev/null || echo "$STATE")" = "$STATE" ] || fail "the node already runs for $(cat "$RUN/state")"
    echo "$STATE" >"$RUN/state"
  fi
  echo $node >"$STATE/node"
  [ -f "$STATE/feature-gates" ] || echo "$feature_gates" >"$STATE/feature-gates"
  [ -f "$STATE/runtime-config" ] || echo "$runtime_config" >"$STATE/runtime-config"
  echo "$PROGRAMS" >"$STATE/programs"
}

address() {
  choose_ports
  API_IP=127.0.0.1
  if [ "$(cat "$STATE/node")" = yes ]; then API_IP=$NODE_IP API_PORT=6443; fi
}

up() {
  install_packages test control-plane $([ $node = no ] || echo node)
  build_programs etcd kube-apiserver kube-controller-manager kubectl \
    $([ $node = no ] || echo kube-scheduler kubelet kube-proxy coredns) \
    $([ "$fake_nodes" -eq 0 ] || echo kube-scheduler kwok)
  settle
  address
  [ $node = no ] || make_network
  make_pki
  [ $node = no ] || start_containerd
  start_control_plane
  [ $node = no ] || start_node
  [ "$fake_nodes" -eq 0 ] || start_fake_nodes "$fake_nodes"
}

down() {
  local component
  [ -d "$STATE" ] || return 0
  for component in "${COMPONENTS[@]}"; do stop "$component"; done
  if [ "$(cat "$STATE/node" 2>/dev/null)" = yes ]; then
    if process containerd >/dev/null; then remove_containers >/dev/null 2>&1; fi
    stop containerd
    remove_node
  fi
  rm -rf "$STATE"
}

status() {
  local component pid
  [ -f "$STATE/node" ] || fail "there is no cluster in $STATE"
  for component in containerd "${COMPONENTS[@]}"; do
    [ -f "$STATE/run/$component" ] || continue
    if pid=$(process "$component"); then
      printf '%-24s process %-8s %s\n' "$component" "$pid" "$(ps -o etime=,rss= -p "$pid" | awk '{printf "since %s, %.0f MB", $1, $2 / 1024}')"
    else
      printf '%-24s not running; the end of %s says why\n' "$component" "$STATE/log/$component.log"
    fi
  done
  kubectl get nodes
}

# bin [PROGRAM…]: builds those of the given programs that are missing, and prints the folder of all programs. The
# default is all programs.
bin() {
  local name
  for name in "$@"; do
    [[ -v PACKAGES[$name] ]] || fail "there is no program \"$name\"; expected one of: ${!PACKAGES[*]}"
  done
  build_programs "$@" >&2
  echo "$PROGRAMS"
}

case $verb in
  up) up ;;
  down) down ;;
  status) status ;;
  load-image) load_image "${arguments[@]}" ;;
  kubeconfig) [ -f "$STATE/admin.kubeconfig" ] && echo "$STATE/admin.kubeconfig" || fail "there is no cluster in $STATE" ;;
  bin) bin "${arguments[@]}" ;;
  "") usage && exit 2 ;;
  *) fail "unknown command $verb; try --help" ;;
esac
