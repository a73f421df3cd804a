"""Tests the operator while its credentials or the server's identity change: its token, its client
certificate, its permissions, and the server's certificate and name."""
import itertools
import json
import os
import pathlib
import subprocess
import tempfile

from harness import api as kube
from harness.clock import ProcessClock
from harness.cluster import poll

from .case import FaultsCase

BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"


class CredentialFaults(FaultsCase):
    def folder(self):
        return pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))

    def token(self, name):
        """Creates a Secret, and returns a token of the default service account. The token is valid
        until the Secret is deleted."""
        secret = self.api.create(kube.core(self.namespace, "secrets"), {"metadata": {"name": name}})
        bound = {"kind": "Secret", "apiVersion": "v1", "name": name, "uid": secret["metadata"]["uid"]}
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
                   "spec": {"expirationSeconds": 3600, "boundObjectRef": bound}}
        return self.api.create(kube.core(self.namespace, "serviceaccounts/default/token"), request)["status"]["token"]

    def allow(self):
        """Grants all permissions to the default service account."""
        self.api.create(BINDINGS, {"metadata": {"name": self.namespace}, "subjects": [
            {"kind": "ServiceAccount", "name": "default", "namespace": self.namespace}],
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}})

    def kubeconfig(self, folder, user, server=None, authority=None):
        """Writes a kubeconfig to the folder, and returns its path. By default, the server is the
        proxy."""
        authority = authority or self.cluster.state / "pki/ca.crt"
        config = {"apiVersion": "v1", "kind": "Config", "current-context": "c",
                  "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
                  "clusters": [{"name": "c", "cluster": {"server": server or self.proxy.server,
                                                         "certificate-authority": str(authority)}}],
                  "users": [{"name": "c", "user": user}]}
        (folder / "kubeconfig").write_text(json.dumps(config))
        return folder / "kubeconfig"

    def client(self, folder):
        """Copies the administrator's certificate and key to the folder. Returns a user entry for a
        kubeconfig that names these files."""
        for name in ("admin.crt", "admin.key"):
            (folder / name).write_bytes((self.cluster.state / "pki" / name).read_bytes())
        return {"client-certificate": str(folder / "admin.crt"), "client-key": str(folder / "admin.key")}

    @staticmethod
    def openssl(*arguments):
        subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)

    def sign(self, authority, subject, out, days=2, extensions=""):
        """Creates the certificate `out`.crt for the key `out`.key, signed by the authority whose
        certificate and key are `authority`.crt and `authority`.key."""
        request, more = out.with_suffix(".csr"), out.with_suffix(".extensions")
        more.write_text(extensions)
        self.openssl("req", "-new", "-key", f"{out}.key", "-subj", subject, "-out", request)
        self.openssl("x509", "-req", "-in", request, "-CA", f"{authority}.crt", "-CAkey", f"{authority}.key", "-CAcreateserial",
                     "-CAserial", out.with_suffix(".serial"), "-days", days, "-extfile", more, "-out", f"{out}.crt")

    def test_the_token_rotates(self):
        """Replaces the token as kubelets do, by redirecting a symbolic link. The server responds to
        the old token with 401."""
        folder = self.folder()
        (folder / "token").symlink_to("..data/token")

        def mount(name):
            (folder / name).mkdir()
            (folder / name / "token").write_text(self.token(name) if name != "empty" else "")
            (folder / "next").symlink_to(name)
            os.replace(folder / "next", folder / "..data")

        self.allow()
        self.proxy = self.add_proxy(certificate=False)
        mount("first")
        self.operator(kubeconfig=self.kubeconfig(folder, {"tokenFile": str(folder / "token")}))
        self.create("before")
        self.expect_life("before")
        mount("empty")
        self.api.delete(kube.core(self.namespace, "secrets/first"))
        numbers = itertools.count()

        def refused():
            self.create(f"meanwhile-{next(numbers)}")
            return [request for request in self.proxy.requests if request.code == 401]
        poll("the old token is refused", 30, refused, every=0.5)
        mount("second")
        for i in range(next(numbers)):
            self.expect_job(f"meanwhile-{i}", 60)
        taken = len(self.proxy.requests)
        self.create("after")
        self.expect_life("after")
        self.assertNotIn(401, [request.code for request in self.proxy.requests[taken:]])
        self.expect_calm()

    def test_rights_are_taken_and_given_back(self):
        """Open watches continue. At first, only writes are rejected; later, when connections are
        cut, watches are rejected, too."""
        folder = self.folder()
        self.allow()
        self.proxy = self.add_proxy(certificate=False)
        (folder / "token").write_text(self.token("token"))
        operator = self.operator(kubeconfig=self.kubeconfig(folder, {"tokenFile": str(folder / "token")}))
        self.create("before")
        self.expect_life("before")
        self.api.delete(f"{BINDINGS}/{self.namespace}")
        self.create("meanwhile")

        def refused(write):
            """Returns the resources for which reads or writes were rejected."""
            return {request.path.rpartition("/")[2] for request in self.proxy.requests
                    if request.code == 403 and request.write == write}
        poll("a write is refused", 30, lambda: refused(True))
        self.proxy.cut()
        poll("all watches are refused", 30, lambda: {"tfjobs", "pods", "services"} <= refused(False))
        self.assertTrue(operator.ready())
        self.allow()
        self.expect_life("meanwhile", seconds=120)
        self.expect_calm()

    def test_the_authority_of_the_server_rotates(self):
        """A new authority signs the server's certificate. The operator does not trust this
        authority until the file that the kubeconfig names contains it."""
        folder = self.folder()
        trusted, new, server = folder / "trusted.crt", folder / "new", folder / "server"
        trusted.write_bytes((self.cluster.state / "pki/ca.crt").read_bytes())
        operator = self.operator(kubeconfig=self.kubeconfig(folder, self.client(folder), authority=trusted))
        self.create("before")
        self.expect_life("before")
        for name in (new, server):
            self.openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", f"{name}.key")
        self.openssl("req", "-x509", "-new", "-key", f"{new}.key", "-days", 2, "-subj", "/CN=new", "-out", f"{new}.crt")
        self.sign(new, "/CN=kube-apiserver", server, extensions="subjectAltName=IP:127.0.0.1\nextendedKeyUsage=serverAuth\n")
        self.proxy.certify(f"{server}.crt", f"{server}.key")
        self.proxy.cut()
        asked = len(self.proxy.requests)
        self.create("meanwhile")
        poll("it is not trusted", 30, lambda: operator.said("its certificate is not trusted"))
        self.assertEqual(len(self.proxy.requests), asked)
        os.replace(f"{new}.crt", trusted)
        self.expect_life("meanwhile")
        self.expect_calm()

    def test_the_client_certificate_had_expired(self):
        """The operator reports the expired certificate, and later uses the replacement. It reads
        the file again every five minutes, so the test makes its steady clock run faster."""
        folder = self.folder()
        user = self.client(folder)
        good = (folder / "admin.crt").read_bytes()
        self.sign(self.cluster.state / "pki/ca", "/O=system:masters/CN=admin", folder / "admin", days=-1,
                  extensions="extendedKeyUsage=clientAuth\n")
        clock = self.enterContext(ProcessClock(speed=30))
        operator = self.operator(kubeconfig=self.kubeconfig(folder, user, server=self.cluster.server),
                                 environment=clock.environment)
        self.create()
        poll("it says why", 30, lambda: operator.said("UNAUTHENTICATED"))
        self.assertFalse(operator.ready())
        (folder / "next").write_bytes(good)
        os.replace(folder / "next", folder / "admin.crt")
        self.expect_life(seconds=90)
        self.assertTrue(operator.ready())

    def test_the_server_has_no_address(self):
        folder = self.folder()
        operator = self.operator(kubeconfig=self.kubeconfig(folder, self.client(folder), server="https://nowhere.invalid:6443"))
        poll("it says so", 60, lambda: operator.said("UNAVAILABLE: https://nowhere.invalid:6443"))
        self.assertTrue(operator.running())
        self.assertFalse(operator.ready())
        status, seconds = operator.stop()
        self.assertEqual(status, 0)
        self.assertLess(seconds, 2)
