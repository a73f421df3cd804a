# Creates keys, certificates and kubeconfigs under STATE. Keeps existing keys and certificates.
# Sourced by cluster.sh.

# key NAME: creates NAME.key.
key() { [ -f "$1.key" ] || openssl ecparam -name prime256v1 -genkey -noout -out "$1.key"; }

# authority NAME SUBJECT: creates NAME.key and the certificate NAME.crt of an authority that signs
# other certificates.
authority() {
  key "$1"
  [ -f "$1.crt" ] || openssl req -x509 -new -key "$1.key" -days 3650 -subj "$2" -out "$1.crt"
}

# certificate NAME SUBJECT USAGE [SUBJECT-ALTERNATIVE-NAMES]: creates NAME.key, and NAME.crt signed
# by the authority $CA (default: ca).
certificate() {
  local authority=${CA:-ca}
  [ ! -f "$1.crt" ] || return 0
  key "$1"
  openssl req -new -key "$1.key" -subj "$2" |
    openssl x509 -req -CA "$authority.crt" -CAkey "$authority.key" -CAcreateserial -days 3650 -out "$1.crt" -extfile <(
      printf 'keyUsage=digitalSignature\nextendedKeyUsage=%s\n%s\n' "$3" "${4:+subjectAltName=$4}"
    ) 2>/dev/null
}

# client NAME SUBJECT: creates a client certificate and a kubeconfig that contains it.
client() {
  certificate "$1" "$2" clientAuth
  cat >"$STATE/$1.kubeconfig" <<END
apiVersion: v1
kind: Config
current-context: tfjob
contexts: [{name: tfjob, context: {cluster: tfjob, user: $1}}]
clusters:
- name: tfjob
  cluster: {server: "https://$API_IP:$API_PORT", certificate-authority-data: $(base64 -w0 ca.crt)}
users:
- name: $1
  user: {client-certificate-data: $(base64 -w0 "$1.crt"), client-key-data: $(base64 -w0 "$1.key")}
END
}

make_pki() (
  umask 077
  mkdir -p "$STATE/pki"
  cd "$STATE/pki"
  authority ca /CN=tfjob-cluster
  key service-account
  [ -f service-account.pub ] || openssl ec -in service-account.key -pubout -out service-account.pub 2>/dev/null
  local name=kubernetes.default.svc.cluster.local
  certificate apiserver /CN=kube-apiserver serverAuth "DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc,\
DNS:$name,DNS:localhost,IP:127.0.0.1,IP:$NODE_IP,IP:${SERVICE_CIDR%.0/*}.1"
  # Anyone who can write to etcd can become root on the node. Therefore, etcd has a separate
  # authority, which issues certificates only to the API server and to etcd itself (its gateway and
  # its peers).
  authority etcd-ca /CN=tfjob-cluster-etcd
  CA=etcd-ca certificate etcd /CN=etcd serverAuth,clientAuth IP:127.0.0.1
  CA=etcd-ca certificate apiserver-to-etcd /CN=apiserver-to-etcd clientAuth
  certificate apiserver-to-kubelet /O=system:masters/CN=apiserver-to-kubelet clientAuth
  certificate kubelet-server "/O=system:nodes/CN=system:node:$NODE" serverAuth "DNS:$NODE,IP:$NODE_IP"
  client kubelet "/O=system:nodes/CN=system:node:$NODE"
  client kube-controller-manager /CN=system:kube-controller-manager
  client kube-scheduler /CN=system:kube-scheduler
  client kube-proxy /CN=system:kube-proxy
  client coredns /CN=system:coredns
  client kwok /O=system:masters/CN=kwok
  client admin /O=system:masters/CN=admin
)
