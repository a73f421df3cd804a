"""Tests the operator while its environment changes: its clock, the limits of a namespace, the
namespace itself, the TFJob CRD, pods and nodes."""
import time

from harness import api as kube
from harness.clock import ProcessClock
from harness.cluster import poll
from harness.jobs import condition

from .case import PAUSED, STEADY, FaultsCase

DEFINITION = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/tfjobs.kubeflow.org"


class SurroundingFaults(FaultsCase):
    def expect_refusal(self, text, name="job"):
        """Checks that a Warning event and the job's condition contain the server's message, and
        that the delays between retries grow."""
        poll(f"an event with \"{text}\"", 20, lambda: any(text in message for message in self.events(name)))
        poll(f"a condition with \"{text}\"", 20, lambda: any(
            text in c.get("message", "") and c["status"] == "True" for c in self.job(name)["status"]["conditions"]))
        tries = lambda: [request.time for request in self.writes() if request.path.endswith("/pods")]  # noqa: E731
        poll("a pause of a second", 20, lambda: time.monotonic() - tries()[-1] > 1)
        self.assertLess(len(tries()), 45)

    def test_a_quota_is_used_up_and_raised(self):
        """The quota first allows no pods, then some of them, and then all."""
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
        poll("two pods", 60, lambda: len(self.kubelet.attempts) >= 2)  # one failed
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
        """The job must report the error, and continue when the template is corrected. Other jobs
        must not be affected."""
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

    def test_the_clock_is_set(self):
        """The wall clock jumps by hours, forward and back, while a job exists. The job must run as
        usual, and the leader must keep the lease.
        tests/timelines/setting-the-clock-changes-no-delay.timeline tests the delay between a
        failure and the replacement."""
        flags = ("--leader-elect", f"--leader-election-namespace={self.namespace}")
        clock = self.enterContext(ProcessClock())
        leader = self.operator(*flags, environment=clock.environment)
        lease = f"/apis/coordination.k8s.io/v1/namespaces/{self.namespace}/leases"
        held = poll("the lease is held", 20, lambda: self.api.items(lease))[0]["spec"]
        other = self.operator(*flags)
        for hours in (2, 3, 0, 1):
            self.create(f"job-{hours}")
            poll("the job has a pod", 20, lambda hours=hours: self.kubelet.attempts.get((f"job-{hours}", "worker", "1")),
                 every=0.01)
            clock.set(hours * 3600)
            self.expect_job(f"job-{hours}", 60)
        self.assertTrue(leader.running() and other.running())
        now = self.api.items(lease)[0]["spec"]
        self.assertEqual((now["holderIdentity"], now["leaseTransitions"]), (held["holderIdentity"], held["leaseTransitions"]))
        self.assertEqual(self.kubelet.violations, [])
        self.expect_calm()

    def test_the_definition_is_deleted_and_made_anew(self):
        """When the CRD is deleted, the API server deletes all jobs, and the garbage collector
        deletes their objects."""
        operator = self.operator()
        for i in range(5):
            self.create(f"job-{i}")
        poll("all pods run", 30, lambda: len(self.kubelet.attempts) == 15)
        before = len(self.proxy.requests)
        self.api.delete(DEFINITION)
        poll("it is gone", 60, lambda: self.api.find(DEFINITION) is None)
        poll("the operator knows", 60, lambda: any(
            request.code == 404 and request.path == kube.tfjobs(self.namespace) for request in self.proxy.requests[before:]))
        self.cluster.install_crd()
        self.create("anew")
        self.expect_life("anew", seconds=90)
        self.assertTrue(operator.ready())
        self.assertLess(len([request for request in self.proxy.requests[before:] if request.write]), 200)
        self.expect_calm(seconds=120)

    def test_running_pods_are_taken_away(self):
        """Pods are deleted without a grace period, as by `kubectl delete pod --force`. They must be
        replaced, and no failure may be counted."""
        self.operator()
        self.create(STEADY)
        poll("all run", 30, lambda: self.job(STEADY)["status"].get("ready") == "3/3" and len(
            self.kubelet.attempts[(STEADY, "worker", "1")]) == 2)
        for name, index in (("worker-0", ("worker", "0")), ("ps-0", ("ps", "0"))):
            self.api.delete(kube.core(self.namespace, f"pods/{STEADY}-{name}"), {"gracePeriodSeconds": 0})
            poll("another pod", 30, lambda index=index: len(self.kubelet.attempts[(STEADY, *index)]) == 2)
        poll("all run", 30, lambda: self.job(STEADY)["status"].get("ready") == "3/3" and condition(self.job(STEADY), "Running"))
        self.expect_calm()
        self.assertEqual(self.job(STEADY)["status"].get("restarts"), 1)
        self.assertEqual({len(uids) for uids in self.kubelet.attempts.values()}, {2})

    def test_a_node_is_deleted(self):
        """Pods on the node are deleted, but without the node they never terminate. The operator
        must force-delete one of them, because its job requests this, and report the other in an
        event. This takes minutes, so the test makes the operator's steady clock run faster."""
        node = self.namespace
        self.api.create("/api/v1/nodes", {"metadata": {"name": node}})
        clock = self.enterContext(ProcessClock(speed=30))
        self.operator(environment=clock.environment)
        self.create(STEADY, lambda job: job["metadata"].update(annotations={"tfjob.dev/force-delete-lost-pods": "true"}))
        self.create(PAUSED)
        ready = lambda: all(self.job(name)["status"].get("ready") == "3/3" for name in (STEADY, PAUSED))  # noqa: E731
        poll("all run", 60, lambda: ready() and len(self.kubelet.attempts[(STEADY, "worker", "1")]) == 2)
        self.kubelet.lost_nodes.add(node)
        pods = {name: kube.core(self.namespace, f"pods/{name}-worker-0") for name in (STEADY, PAUSED)}
        for path in pods.values():
            self.api.create(path + "/binding", {"metadata": {"name": path.rpartition("/")[2]},
                                                "target": {"apiVersion": "v1", "kind": "Node", "name": node}})
        self.api.delete(f"/api/v1/nodes/{node}")
        for path in pods.values():
            self.api.delete(path)
        poll("another pod", 60, lambda: len(self.kubelet.attempts[(STEADY, "worker", "0")]) == 2)
        poll("an event", 60, lambda: any(f"because node {node} is not ready" in message for message in self.events(PAUSED)))
        self.assertEqual(len(self.kubelet.attempts[(PAUSED, "worker", "0")]), 1)
        self.api.delete(pods[PAUSED], {"gracePeriodSeconds": 0})
        poll("another pod", 60, lambda: len(self.kubelet.attempts[(PAUSED, "worker", "0")]) == 2)
        poll("all run", 60, ready)
        self.expect_calm()
        self.assertEqual(self.job(STEADY)["status"].get("restarts"), 1)
