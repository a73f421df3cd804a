# Creates keys, certificates and kubeconfigs under STATE; existing ones are kept. Sourced
# by cluster.sh.

# key NAME
key() { [ -f "$1.key" ] || openssl ecparam -name prime256v1 -genkey -noout -out "$1.key"; }

# certificate NAME SUBJECT USAGE [SUBJECT-ALTERNATIVE-NAMES]
certificate() {
  [ ! -f "$1.crt" ] || return 0
  key "$1"
  openssl req -new -key "$1.key" -subj "$2" |
    openssl x509 -req -CA ca.crt -CAkey ca.key -CAcreateserial -days 3650 -out "$1.crt" -extfile <(
      printf 'keyUsage=digitalSignature\nextendedKeyUsage=%s\n%s\n' "$3" "${4:+subjectAltName=$4}"
    ) 2>/dev/null
}

# client NAME SUBJECT: creates a client's certificate and a kubeconfig with it.
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
  key ca
  [ -f ca.crt ] || openssl req -x509 -new -key ca.key -days 3650 -subj /CN=tfjob-cluster -out ca.crt
  key service-account
  [ -f service-account.pub ] || openssl ec -in service-account.key -pubout -out service-account.pub 2>/dev/null
  local name=kubernetes.default.svc.cluster.local
  certificate apiserver /CN=kube-apiserver serverAuth "DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc,\
DNS:$name,DNS:localhost,IP:127.0.0.1,IP:$NODE_IP,IP:${SERVICE_CIDR%.0/*}.1"
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
