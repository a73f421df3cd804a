"""What is around the operator changes: its token and its clock, what a namespace allows, the namespace itself."""
import itertools
import json
import os
import pathlib
import tempfile
import time

from harness import api as kube
from harness.clock import ProcessClock
from harness.cluster import poll
from harness.proxy import FaultProxy

from .case import FaultsCase


class SurroundingFaults(FaultsCase):
    def events(self, name="job"):
        """Messages of the job's Warning events."""
        return [event.get("note") or event.get("message") or "" for event in
                self.api.items(f"/apis/events.k8s.io/v1/namespaces/{self.namespace}/events")
                if event["type"] == "Warning" and event["regarding"].get("name") == name]

    def expect_refusal(self, text, name="job"):
        """A Warning event and the job's condition say what the server says, and the pauses between tries grow."""
        poll(f"an event with \"{text}\"", 20, lambda: any(text in message for message in self.events(name)))
        poll(f"a condition with \"{text}\"", 20, lambda: any(
            text in c.get("message", "") and c["status"] == "True" for c in self.job(name)["status"]["conditions"]))
        tries = lambda: [request.time for request in self.writes() if request.path.endswith("/pods")]  # noqa: E731
        poll("a pause of a second", 20, lambda: time.monotonic() - tries()[-1] > 1)
        self.assertLess(len(tries()), 45)

    def test_a_quota_is_used_up_and_raised(self):
        """First there is no room for any pod, then for some, then for all."""
        quota = kube.core(self.namespace, "resourcequotas")
        self.api.create(quota, {"metadata": {"name": "pods"}, "spec": {"hard": {"pods": "0"}}})

        def raise_to(pods):
            self.api.patch(quota + "/pods", {"spec": {"hard": {"pods": pods}}})

        poll("the quota holds", 20, lambda: self.api.get(quota + "/pods")["status"].get("hard"))
        self.operator()
        self.create()
        self.expect_refusal("exceeded quota: pods")
        self.assertFalse(self.kubelet.attempts)
        raise_to("2")
        poll("two pods", 60, lambda: len(self.kubelet.attempts) >= 2)  # one that failed makes room for a third
        poll("an event with what is left", 20, lambda: any("limited: pods=2" in message for message in self.events()))
        raise_to("10")
        self.expect_life()
        self.expect_calm()

    def test_a_limit_range_refuses_pods_for_a_time(self):
        limits = kube.core(self.namespace, "limitranges")
        self.api.create(limits, {"metadata": {"name": "small"}, "spec": {"limits": [
            {"type": "Container", "max": {"cpu": "100m"}, "default": {"cpu": "100m"}}]}})

        def greedy(job):
            for replica in job["spec"]["tfReplicaSpecs"].values():
                replica["template"]["spec"]["containers"][0]["resources"] = {"limits": {"cpu": "2"}}
        self.operator()
        self.create(change=greedy)
        self.expect_refusal("maximum cpu usage per Container is 100m")
        self.api.delete(limits + "/small")
        self.expect_life()
        self.expect_calm()

    def test_a_template_that_the_server_finds_invalid(self):
        """Its job tells so, others live on, and the job goes on when the template is mended."""
        def unmountable(job):
            worker = job["spec"]["tfReplicaSpecs"]["Worker"]["template"]["spec"]
            worker["containers"][0]["volumeMounts"] = [{"name": "nowhere", "mountPath": "/data"}]
        self.operator()
        self.create(change=unmountable)
        self.expect_refusal('volumeMounts[0].name: Not found: "nowhere"')
        self.create("other")
        poll("the other succeeded", 60, lambda: self.ended("other"))
        spec = self.job()["spec"]["tfReplicaSpecs"]
        del spec["Worker"]["template"]["spec"]["containers"][0]["volumeMounts"]
        self.api.patch(kube.tfjobs(self.namespace) + "/job", {"spec": {"tfReplicaSpecs": spec}})
        self.expect_life(seconds=90)
        self.expect_calm()

    def test_the_namespace_is_deleted_and_made_anew(self):
        operator = self.operator()
        for i in range(5):
            self.create(f"job-{i}")
        poll("all pods run", 30, lambda: len(self.kubelet.attempts) == 15)
        path = f"/api/v1/namespaces/{self.namespace}"
        before = len(self.writes())
        self.api.delete(path)
        poll("the namespace is gone", 60, lambda: self.api.find(path) is None)
        self.assertLess(len(self.writes()) - before, 200)
        self.assertTrue(operator.ready())
        self.kubelet.attempts.clear()
        self.cluster.create_namespace(self.namespace)
        self.create("job-0")
        self.expect_life("job-0")
        self.expect_calm()

    def token(self, name):
        """A token of the default service account, good as long as the Secret `name`, which is made."""
        secret = self.api.create(kube.core(self.namespace, "secrets"), {"metadata": {"name": name}})
        bound = {"kind": "Secret", "apiVersion": "v1", "name": name, "uid": secret["metadata"]["uid"]}
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
                   "spec": {"expirationSeconds": 3600, "boundObjectRef": bound}}
        return self.api.create(kube.core(self.namespace, "serviceaccounts/default/token"), request)["status"]["token"]

    def kubeconfig(self, folder, proxy):
        """One with the token in folder/token."""
        config = {"apiVersion": "v1", "kind": "Config", "current-context": "c",
                  "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
                  "clusters": [{"name": "c", "cluster": {"server": proxy.server, "certificate-authority":
                                                         str(self.cluster.state / "pki/ca.crt")}}],
                  "users": [{"name": "c", "user": {"tokenFile": str(folder / "token")}}]}
        (folder / "kubeconfig").write_text(json.dumps(config))
        return folder / "kubeconfig"

    def test_the_token_rotates(self):
        """As kubelets do it: a link is put elsewhere. The server takes the old token no more, and tells it by 401."""
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        (folder / "token").symlink_to("..data/token")

        def mount(name):
            (folder / name).mkdir()
            (folder / name / "token").write_text(self.token(name) if name != "empty" else "")
            (folder / "next").symlink_to(name)
            os.replace(folder / "next", folder / "..data")

        binding = {"metadata": {"name": self.namespace}, "subjects": [
            {"kind": "ServiceAccount", "name": "default", "namespace": self.namespace}],
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}}
        self.api.create("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding)
        self.proxy = self.enterContext(FaultProxy(self.cluster, certificate=False))
        mount("first")
        self.operator(kubeconfig=self.kubeconfig(folder, self.proxy))
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

    def test_the_clock_is_set(self):
        """Hours ahead and back: no pause gets longer, nobody loses or takes the lease."""
        flags = ("--leader-elect", f"--leader-election-namespace={self.namespace}")
        clock = self.enterContext(ProcessClock())
        leader = self.operator(*flags, environment=clock.environment)
        lease = f"/apis/coordination.k8s.io/v1/namespaces/{self.namespace}/leases"
        held = poll("the lease is held", 20, lambda: self.api.items(lease))[0]["spec"]
        other = self.operator(*flags)
        for hours in (2, 3, 0, 1):
            clock.set(hours * 3600)
            self.create(f"job-{hours}")
            self.expect_job(f"job-{hours}", 60)
        self.assertTrue(leader.running() and other.running())
        now = self.api.items(lease)[0]["spec"]
        self.assertEqual((now["holderIdentity"], now["leaseTransitions"]), (held["holderIdentity"], held["leaseTransitions"]))
        self.assertEqual(self.kubelet.violations, [])
        self.expect_calm()
