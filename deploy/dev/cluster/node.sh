# Runs this machine as a node with containerd, the kubelet, kube-proxy and CoreDNS. The pods are on
# a separate bridge. Needs root. Sourced by cluster.sh.

# Kernel settings that pods need. remove_node restores the previous values.
SYSCTLS=(net.ipv4.ip_forward=1 net.bridge.bridge-nf-call-iptables=1 kernel.panic=10 kernel.panic_on_oops=1
  vm.overcommit_memory=1)

sysctl_file() { echo "/proc/sys/${1//.//}"; }

make_network() {
  local setting file
  modprobe -q br_netfilter 2>/dev/null || true  # it may be built into the kernel
  for setting in "${SYSCTLS[@]}"; do
    file=$(sysctl_file "${setting%=*}")
    grep -qs "^${setting%=*}=" "$STATE/sysctl" || echo "${setting%=*}=$(cat "$file")" >>"$STATE/sysctl"
    echo "${setting#*=}" >"$file"
  done
  ip link show "$BRIDGE" >/dev/null 2>&1 || ip link add "$BRIDGE" type bridge
  ip addr replace "$NODE_IP/${POD_CIDR#*/}" dev "$BRIDGE"
  ip link set "$BRIDGE" up
}

# Writes a configuration for Debian's containerd 1.6 that keeps network namespaces under RUN, where
# remove_node finds all of them, including those of lost pods.
write_containerd_config() {
  mkdir -p "$STATE/cni"
  cat >"$STATE/cni/10-pods.conflist" <<END
{"cniVersion": "1.0.0", "name": "pods", "plugins": [
  {"type": "bridge", "bridge": "$BRIDGE", "isGateway": true, "hairpinMode": true, "ipMasq": false,
   "ipam": {"type": "host-local", "dataDir": "$STATE/ipam", "routes": [{"dst": "0.0.0.0/0"}],
            "ranges": [[{"subnet": "$POD_CIDR", "gateway": "$NODE_IP"}]]}}]}
END
  cat >"$STATE/containerd.toml" <<END
version = 2
root = "$STATE/containerd"
state = "$RUN/containerd"
disabled_plugins = [
  "io.containerd.snapshotter.v1.aufs", "io.containerd.snapshotter.v1.btrfs", "io.containerd.snapshotter.v1.zfs",
  "io.containerd.snapshotter.v1.devmapper", "io.containerd.tracing.processor.v1.otlp",
  "io.containerd.internal.v1.tracing", "io.containerd.internal.v1.opt",
]
[grpc]
  address = "$RUN/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "tfjob.dev/pause:1"
  stream_server_address = "127.0.0.1"
  netns_mounts_under_state_dir = true
  restrict_oom_score_adj = true
  disable_apparmor = true
  tolerate_missing_hugetlb_controller = true
  disable_hugetlb_controller = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "$STATE/cni"
END
}

start_containerd() {
  write_containerd_config
  start containerd containerd --config "$STATE/containerd.toml"
  await 30 "containerd ready" ctr version
  if [ ! -f "$STATE/pause.tar" ]; then
    gcc -static -Os -s -o "$STATE/pause" "$CLUSTER/pause.c"
    deploy/docker/oci_image.py --name tfjob.dev/pause:1 --program "$STATE/pause=/pause" --output "$STATE/pause.tar"
  fi
  load_image "$STATE/pause.tar"
}

load_image() {
  local image
  for image in "$@"; do ctr images import "$image"; done
}

# Writes a configuration that also works on small and unusual machines: with cgroup v1 or v2,
# without systemd, and without CAP_SYS_RESOURCE.
write_kubelet_config() {
  : >"$STATE/resolv.conf"  # pods resolve only the cluster's names
  cat >"$STATE/kubelet.yaml" <<END
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
address: $NODE_IP
readOnlyPort: 0
healthzBindAddress: 127.0.0.1
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: $STATE/pki/ca.crt}}
authorization: {mode: Webhook}
tlsCertFile: $STATE/pki/kubelet-server.crt
tlsPrivateKeyFile: $STATE/pki/kubelet-server.key
containerRuntimeEndpoint: unix://$RUN/containerd.sock
failCgroupV1: false
cgroupDriver: cgroupfs
cgroupsPerQOS: false
enforceNodeAllocatable: []
failSwapOn: false
oomScoreAdj: 0
maxOpenFiles: $(ulimit -Hn)
makeIPTablesUtilChains: false
clusterDNS: [$NODE_IP]
clusterDomain: cluster.local
resolvConf: $STATE/resolv.conf
podLogsDir: $STATE/pod-logs
volumePluginDir: $STATE/volume-plugins
staticPodPath: ""
maxPods: 200
nodeStatusUpdateFrequency: 5s
syncFrequency: 10s
evictionHard: {memory.available: 100Mi, nodefs.available: 1%, imagefs.available: 1%, nodefs.inodesFree: 1%}
imageMaximumGCAge: 0s
imageGCHighThresholdPercent: 100
imageGCLowThresholdPercent: 99
logging: {verbosity: 2}
END
}

start_kubelet() {
  write_kubelet_config
  start kubelet "$PROGRAMS/kubelet" --config "$STATE/kubelet.yaml" --kubeconfig "$STATE/kubelet.kubeconfig" \
    --root-dir "$STATE/kubelet" --hostname-override "$NODE" --node-ip "$NODE_IP"
}

# Starts kube-proxy and CoreDNS, which provide the addresses and names of services.
start_services() {
  cat >"$STATE/kube-proxy.yaml" <<END
apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: nftables
bindAddress: $NODE_IP
healthzBindAddress: 127.0.0.1:10256
metricsBindAddress: 127.0.0.1:10249
clusterCIDR: $POD_CIDR
hostnameOverride: $NODE
oomScoreAdj: 0
clientConnection: {kubeconfig: $STATE/kube-proxy.kubeconfig}
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
nodePortAddresses: [127.0.0.0/8]
END
  start kube-proxy "$PROGRAMS/kube-proxy" --config "$STATE/kube-proxy.yaml"
  # Names outside the cluster get NXDOMAIN immediately. This needs a separate server block, because
  # in a shared block the template plugin would answer before the kubernetes plugin.
  cat >"$STATE/Corefile" <<END
cluster.local:53 in-addr.arpa:53 {
  bind $NODE_IP
  errors
  kubernetes cluster.local in-addr.arpa {
    kubeconfig $STATE/coredns.kubeconfig
    ttl 1
  }
}
.:53 {
  bind $NODE_IP
  template ANY ANY {
    rcode NXDOMAIN
  }
}
END
  kubectl apply -f "$CLUSTER/coredns-rbac.yaml" >/dev/null
  start coredns "$PROGRAMS/coredns" -conf "$STATE/Corefile"
}

start_node() {
  start_scheduler
  start_kubelet
  start_services
  await 120 "node ready" nodes_ready "$NODE"
}

remove_containers() {
  local task container
  for task in $(ctr tasks ls -q); do ctr tasks kill -s KILL "$task" || true; done
  for container in $(ctr containers ls -q); do
    ctr tasks rm -f "$container" || true
    ctr containers rm "$container" || true
  done
}

# Removes everything that containerd, the kubelet and kube-proxy leave behind: mounts (including
# network namespaces), the pods' cgroups, nftables tables and the bridge. Restores the kernel
# settings.
remove_node() {
  local mount setting table
  for mount in $(awk -v a="$STATE/" -v b="$RUN/" 'index($2, a) == 1 || index($2, b) == 1 {print $2}' /proc/mounts | sort -r); do
    umount -l "$mount"
  done
  # Remove the cgroups that have no processes; rmdir fails for all others.
  find /sys/fs/cgroup -mindepth 1 -maxdepth 4 -depth -type d -path '*/k8s.io*' -exec rmdir {} + 2>/dev/null || true
  for table in ip ip6; do nft delete table "$table" kube-proxy 2>/dev/null || true; done
  ip link del "$BRIDGE" 2>/dev/null || true
  if [ -f "$STATE/sysctl" ]; then
    while read -r setting; do echo "${setting#*=}" >"$(sysctl_file "${setting%=*}")"; done <"$STATE/sysctl"
  fi
  rm -rf "$RUN"
}
