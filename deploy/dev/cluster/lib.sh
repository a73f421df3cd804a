# Shared by cluster.sh and its parts: where things are, how a process is started, known to live, and stopped.
# Sourced, never run. STATE is the cluster's folder; everything that a cluster writes is under it, or under RUN.
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
CLUSTER=$ROOT/deploy/dev/cluster
CACHE=$HOME/.cache/tfjob/cluster
STATE=${STATE:-$CACHE/state}

# Of the node; one machine has one. Its address belongs to a bridge, so that nothing outside the machine reaches it.
RUN=/run/tfjob-cluster  # sockets: their paths may not be longer than 107 characters
NODE=node-1 BRIDGE=tfjob0 NODE_IP=10.244.0.1 POD_CIDR=10.244.0.0/24 SERVICE_CIDR=10.96.0.0/16

fail() {
  echo "cluster.sh: $*" >&2
  exit 1
}

kubectl() { "$PROGRAMS/kubectl" --kubeconfig "$STATE/admin.kubeconfig" "$@"; }
ctr() { command ctr -a "$RUN/containerd.sock" -n k8s.io "$@"; }

# process NAME: prints the id of the process that `start` started, while it is still that program.
process() {
  local pid program
  [ -f "$STATE/run/$1.pid" ] || return 1
  read -r pid program <"$STATE/run/$1.pid"
  [ "$(readlink "/proc/$pid/exe")" = "$program" ] || return 1
  echo "$pid"
}

# start NAME PROGRAM ARGUMENT…: unless it lives. STATE/run/NAME is the same as a command of its own: it replaces itself by
# the program and notes its id in STATE/run/NAME.pid, so that a test may stop a component and start it again.
start() {
  local name=$1 program
  program=$(realpath "$(command -v "$2")")
  shift 2
  mkdir -p "$STATE/run" "$STATE/log"
  {
    printf '#!/bin/sh\necho "$$" %q >%q\nexec' "$program" "$STATE/run/$name.pid"
    printf ' %q' "$program" "$@"
    printf ' >>%q 2>&1 </dev/null\n' "$STATE/log/$name.log"
  } >"$STATE/run/$name"
  chmod +x "$STATE/run/$name"
  if ! process "$name" >/dev/null; then
    setsid "$STATE/run/$name" &
    await 5 "" process "$name"
  fi
}

# stop NAME: asks, and after ten seconds makes it.
stop() {
  local pid deadline=$((SECONDS + 10))
  if pid=$(process "$1"); then
    kill -CONT "$pid"
    kill -TERM "$pid"
    while process "$1" >/dev/null; do
      if [ $SECONDS -ge $deadline ]; then kill -KILL "$pid"; fi
      sleep 0.05
    done
    say "stopped $1"
  fi
  rm -f "$STATE/run/$1" "$STATE/run/$1.pid"
}

# await SECONDS WHAT COMMAND…: tries the command until it succeeds.
await() {
  local deadline=$((SECONDS + $1)) what=$2
  shift 2
  until "$@" >/dev/null 2>&1; do
    if [ $SECONDS -ge $deadline ]; then fail "not in time: ${what:-$*}; the logs are in $STATE/log"; fi
    sleep 0.1
  done
  [ -z "$what" ] || say "$what"
}
