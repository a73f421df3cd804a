# Starts etcd, the API server, the controllers, the scheduler and fake nodes. Sourced by cluster.sh.

# Chooses four consecutive ports that are free now, below the range that the kernel assigns to
# clients, so that no client takes a port while the API server is down. Kept in STATE/ports.
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
  ETCD_PORT=$first KWOK_PORT=$((first + 2)) API_PORT=$((first + 3))  # the second: etcd's peers
}

start_etcd() {
  local client=http://127.0.0.1:$ETCD_PORT peer=http://127.0.0.1:$((ETCD_PORT + 1))
  start etcd "$PROGRAMS/etcd" --data-dir "$STATE/etcd" --listen-client-urls "$client" --advertise-client-urls "$client" \
    --listen-peer-urls "$peer" --initial-advertise-peer-urls "$peer" --initial-cluster "default=$peer" \
    --unsafe-no-fsync --log-level warn
}

# chosen FLAG: prints that flag for the components if the cluster was created with it.
chosen() {
  local value
  value=$(cat "$STATE/$1" 2>/dev/null || true)
  [ -z "$value" ] || echo "--$1=$value"
}

# Records who deletes a pod and with what answer: STATE/log/audit.log answers why a pod vanished.
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
  start kube-apiserver "$PROGRAMS/kube-apiserver" $(chosen feature-gates) $(chosen runtime-config) --etcd-servers "http://127.0.0.1:$ETCD_PORT" \
    --bind-address "$API_IP" --advertise-address "$NODE_IP" --secure-port "$API_PORT" \
    --service-cluster-ip-range "$SERVICE_CIDR" --authorization-mode Node,RBAC --enable-admission-plugins NodeRestriction \
    --client-ca-file "$pki/ca.crt" --tls-cert-file "$pki/apiserver.crt" --tls-private-key-file "$pki/apiserver.key" \
    --kubelet-client-certificate "$pki/apiserver-to-kubelet.crt" --kubelet-client-key "$pki/apiserver-to-kubelet.key" \
    --kubelet-certificate-authority "$pki/ca.crt" --kubelet-preferred-address-types InternalIP \
    --service-account-issuer "$issuer" --service-account-key-file "$pki/service-account.pub" \
    --service-account-signing-key-file "$pki/service-account.key" \
    --audit-policy-file "$STATE/audit-policy.yaml" --audit-log-path "$STATE/log/audit.log" --audit-log-mode blocking
  # Ready includes the default roles, without which the controller manager exits at once.
  await 120 "API server ready" kubectl get --raw /readyz
}

# client_flags NAME: prints the flags with which a component reaches the API server, fast enough for
# thousands of pods.
client_flags() {
  local file=$STATE/$1.kubeconfig
  echo "--kubeconfig $file --authentication-kubeconfig $file --authorization-kubeconfig $file --secure-port 0" \
    "--leader-elect=false --kube-api-qps 500 --kube-api-burst 1000 $(chosen feature-gates)"
}

start_controller_manager() {
  # Without a node no names are looked up, so the two objects per service that serve this are left
  # out. So is the pod garbage collector: it deletes by name pods that it saw terminating without a
  # node, and by then the name may belong to a replacement.
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

# Pods wait for a scheduler only if there are nodes. To spread the pods of a service, the scheduler
# reads all services of the namespace once per pod. With thousands of services that is most of its
# work, so spreading is off on fake nodes.
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

# nodes_ready SELECTION: returns whether the selected nodes of `kubectl get nodes` are ready.
nodes_ready() {
  ! kubectl get nodes --no-headers "$@" 2>&1 | awk '$2 != "Ready"' | grep -q .
}

# start_fake_nodes COUNT: starts fake nodes. KWOK keeps them Ready and reports all their
# pods as running.
start_fake_nodes() {
  start_scheduler
  start kwok "$PROGRAMS/kwok" --kubeconfig "$STATE/kwok.kubeconfig" --manage-all-nodes=false \
    --manage-nodes-with-annotation-selector kwok.x-k8s.io/node=fake --server-address "127.0.0.1:$KWOK_PORT" \
    --node-lease-duration-seconds 40 --config "$PROGRAMS/kwok-stages.yaml" --config "$CLUSTER/kwok-finish.yaml"
  for i in $(seq "$1"); do sed "s/NUMBER/$i/" "$CLUSTER/kwok-node.yaml"; done |
    kubectl apply --server-side -f - >/dev/null
  await 120 "$1 fake nodes ready" nodes_ready -l type=kwok
}
