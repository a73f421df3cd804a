# Defines paths, and functions that start, find and stop processes, for cluster.sh and its parts.
# Sourced, never run. STATE is the cluster's folder. A cluster writes only to STATE and RUN.
source "$(dirname "${BASH_SOURCE[0]}")/../lib.sh"
CLUSTER=$ROOT/deploy/dev/cluster
CACHE=$HOME/.cache/tfjob/cluster
STATE=${STATE:-$CACHE/state}

# Settings of the machine's only node. The node's address belongs to a bridge, so it cannot be
# reached from outside the machine.
RUN=/run/tfjob-cluster  # short, because the path of a socket may have at most 107 characters
NODE=node-1 BRIDGE=tfjob0 NODE_IP=10.244.0.1 POD_CIDR=10.244.0.0/24 SERVICE_CIDR=10.96.0.0/16

fail() {
  echo "cluster.sh: $*" >&2
  exit 1
}

kubectl() { "$PROGRAMS/kubectl" --kubeconfig "$STATE/admin.kubeconfig" "$@"; }
ctr() { command ctr -a "$RUN/containerd.sock" -n k8s.io "$@"; }

# process NAME: prints the ID of the process that `start` has started. Fails if this process no
# longer runs the program.
process() {
  local pid program
  [ -f "$STATE/run/$1.pid" ] || return 1
  read -r pid program <"$STATE/run/$1.pid"
  [ "$(readlink "/proc/$pid/exe")" = "$program" ] || return 1
  echo "$pid"
}

# start NAME PROGRAM ARGUMENT…: starts the program, unless it is already running. Also writes
# STATE/run/NAME, a script with which tests restart a component that they have stopped: it writes
# its process id to STATE/run/NAME.pid, and then executes the program.
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

# stop NAME: requests that the process stop, and kills it if it is still running after ten seconds.
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

# within SECONDS COMMAND…: repeats the command until it succeeds. Fails after SECONDS.
within() {
  local deadline=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    if [ $SECONDS -ge $deadline ]; then return 1; fi
    sleep 0.1
  done
}

# await SECONDS WHAT COMMAND…: like within, but exits with an error after SECONDS.
await() {
  local seconds=$1 what=$2
  shift 2
  if ! within "$seconds" "$@"; then
    report_components >&2
    fail "timed out: ${what:-$*}; the logs are in $STATE/log"
  fi
  [ -z "$what" ] || say "$what"
}

# report_components: prints the end of each component's log, and which components have exited. A test
# removes the logs of its cluster, so only this output is kept.
report_components() {
  local log name
  for log in "$STATE"/log/*.log; do
    name=$(basename "$log" .log)
    [ "$name" != audit ] || continue
    say "$name$(process "$name" >/dev/null || echo ", which is not running"):"
    tail -n 8 "$log" | cut -c 1-300
  done
}
