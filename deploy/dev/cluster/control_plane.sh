# Starts etcd, the API server, the controllers, the scheduler and fake nodes. Sourced by cluster.sh.

# Chooses four consecutive free ports and records the first one in STATE/ports. The ports are below
# the range from which the kernel assigns ports to clients, so no client can occupy the API server's
# port while the server is down.
choose_ports() {
  local first last
  if [ ! -f "$STATE/ports" ]; then
    read -r last _ </proc/sys/net/ipv4/ip_local_port_range
    while :; do
      first=$((10000 + (RANDOM * 32768 + RANDOM) % (last - 10004)))
      ! ss -Htln "sport >= :$first and sport <= :$((first + 3))" | grep -q . && break
    done
    echo "$first" >"$STATE/ports"
  fi
  read -r first <"$STATE/ports"
  ETCD_PORT=$first KWOK_PORT=$((first + 2)) API_PORT=$((first + 3))  # the second port is for etcd's peers
}

# Any user of this machine can reach etcd's ports, so etcd accepts only clients with a certificate
# from its own authority.
start_etcd() {
  local pki=$STATE/pki client=https://127.0.0.1:$ETCD_PORT peer=https://127.0.0.1:$((ETCD_PORT + 1))
  start etcd "$PROGRAMS/etcd" --data-dir "$STATE/etcd" --listen-client-urls "$client" --advertise-client-urls "$client" \
    --listen-peer-urls "$peer" --initial-advertise-peer-urls "$peer" --initial-cluster "default=$peer" \
    --client-cert-auth --trusted-ca-file "$pki/etcd-ca.crt" --cert-file "$pki/etcd.crt" --key-file "$pki/etcd.key" \
    --peer-client-cert-auth --peer-trusted-ca-file "$pki/etcd-ca.crt" --peer-cert-file "$pki/etcd.crt" \
    --peer-key-file "$pki/etcd.key" --unsafe-no-fsync --log-level warn
}

# chosen FLAG: prints the flag and its value if the cluster was created with this flag.
chosen() {
  local value
  value=$(cat "$STATE/$1" 2>/dev/null || true)
  [ -z "$value" ] || echo "--$1=$value"
}

# Makes the API server record deletions of pods in STATE/log/audit.log: which client deletes which
# pod, and the response.
write_audit_policy() {
  cat >"$STATE/audit-policy.yaml" <<EOF
apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: Request
  verbs: [delete, deletecollection]
  resources: [{group: "", resources: [pods]}]
- level: None
EOF
}

start_apiserver() {
  local pki=$STATE/pki issuer=https://kubernetes.default.svc.cluster.local
  write_audit_policy
  # shellcheck disable=SC2046
  start kube-apiserver "$PROGRAMS/kube-apiserver" $(chosen feature-gates) $(chosen runtime-config) --etcd-servers "https://127.0.0.1:$ETCD_PORT" \
    --etcd-cafile "$pki/etcd-ca.crt" --etcd-certfile "$pki/apiserver-to-etcd.crt" --etcd-keyfile "$pki/apiserver-to-etcd.key" \
    --bind-address "$API_IP" --advertise-address "$NODE_IP" --secure-port "$API_PORT" \
    --service-cluster-ip-range "$SERVICE_CIDR" --authorization-mode Node,RBAC --enable-admission-plugins NodeRestriction \
    --client-ca-file "$pki/ca.crt" --tls-cert-file "$pki/apiserver.crt" --tls-private-key-file "$pki/apiserver.key" \
    --kubelet-client-certificate "$pki/apiserver-to-kubelet.crt" --kubelet-client-key "$pki/apiserver-to-kubelet.key" \
    --kubelet-certificate-authority "$pki/ca.crt" --kubelet-preferred-address-types InternalIP \
    --service-account-issuer "$issuer" --service-account-key-file "$pki/service-account.pub" \
    --service-account-signing-key-file "$pki/service-account.key" \
    --audit-policy-file "$STATE/audit-policy.yaml" --audit-log-path "$STATE/log/audit.log" --audit-log-mode blocking
  # Wait until the server is ready, because the default roles then exist. Without these roles, the
  # controller manager would exit immediately.
  await 120 "API server ready" kubectl get --raw /readyz
}

# client_flags NAME: prints a component's flags for access to the API server. They include rate
# limits that are high enough for thousands of pods.
client_flags() {
  local file=$STATE/$1.kubeconfig
  echo "--kubeconfig $file --authentication-kubeconfig $file --authorization-kubeconfig $file --secure-port 0" \
    "--leader-elect=false --kube-api-qps 500 --kube-api-burst 1000 $(chosen feature-gates)"
}

start_controller_manager() {
  # Without a real node, nothing looks up service names, so the controllers that create two objects
  # per service for this purpose are disabled. The pod garbage collector is disabled, too: if it
  # finds a terminating pod without a node, it deletes the pod by name, and by then a new pod may have
  # that name.
  local controllers="*"
  [ $node = yes ] || controllers="*$(printf -- ',-%s-controller' endpoints endpointslice endpointslice-mirroring pod-garbage-collector)"
  # shellcheck disable=SC2046
  start kube-controller-manager "$PROGRAMS/kube-controller-manager" $(client_flags kube-controller-manager) \
    --controllers "$controllers" --allocate-node-cidrs=false \
    --use-service-account-credentials --service-cluster-ip-range "$SERVICE_CIDR" \
    --root-ca-file "$STATE/pki/ca.crt" --service-account-private-key-file "$STATE/pki/service-account.key"
}

start_control_plane() {
  start_etcd
  start_apiserver
  start_controller_manager
  await 60 "default service account" kubectl get serviceaccount default
}

# Called only if the cluster has nodes. To spread the pods of a service, the scheduler reads all
# services of the namespace once per pod. With thousands of services, this would be most of its
# work, so spreading is disabled if all nodes are fake.
start_scheduler() {
  local constraints=""
  [ $node = yes ] || constraints='
  - name: PodTopologySpread
    args: {defaultingType: List, defaultConstraints: []}'
  cat >"$STATE/scheduler.yaml" <<EOF
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
clientConnection: {kubeconfig: "$STATE/kube-scheduler.kubeconfig", qps: 500, burst: 1000}
leaderElection: {leaderElect: false}
profiles:
- schedulerName: default-scheduler
  pluginConfig:${constraints:- []}
EOF
  # shellcheck disable=SC2046
  start kube-scheduler "$PROGRAMS/kube-scheduler" --config "$STATE/scheduler.yaml" --secure-port 0 $(chosen feature-gates)
}

# nodes_ready ARGUMENT…: returns whether all nodes that `kubectl get nodes ARGUMENT…` lists are
# ready.
nodes_ready() {
  ! kubectl get nodes --no-headers "$@" 2>&1 | awk '$2 != "Ready"' | grep -q .
}

# KWOK keeps fake nodes Ready and reports all pods on them as running.
start_kwok() {
  start kwok "$PROGRAMS/kwok" --kubeconfig "$STATE/kwok.kubeconfig" --manage-all-nodes=false \
    --manage-nodes-with-annotation-selector kwok.x-k8s.io/node=fake --server-address "127.0.0.1:$KWOK_PORT" \
    --node-lease-duration-seconds 40 --config "$PROGRAMS/kwok-stages.yaml" --config "$CLUSTER/kwok-finish.yaml"
}

# start_fake_nodes COUNT: starts fake nodes. KWOK usually makes them ready within seconds, but in CI,
# they were once not ready after two minutes. Therefore, KWOK is restarted if this takes long.
start_fake_nodes() {
  start_scheduler
  start_kwok
  for i in $(seq "$1"); do sed "s/NUMBER/$i/" "$CLUSTER/kwok-node.yaml"; done |
    kubectl apply --server-side -f - >/dev/null
  if ! within 40 nodes_ready -l type=kwok; then
    report_components >&2
    stop kwok
    start_kwok
  fi
  await 120 "$1 fake nodes ready" nodes_ready -l type=kwok
}
