"""Defines the base class of the cases. All cases of a class share a cluster. Each test has its own
namespace, simulated kubelet, fault proxy and jobs."""
import collections
import itertools
import os
import pathlib
import tempfile
import time
import unittest

from harness import api as kube
from harness.cluster import Cluster, poll
from harness.invariants import violations
from harness.jobs import condition, tfjob
from harness.kubelet import Kubelet
from harness.process import Operator, build_operator
from harness.proxy import FaultProxy

RETRYABLE = 130  # an exit code of at least 128, under ExitCode
STEADY, PAUSED, DELETED = BYSTANDERS = ("steady", "paused", "deleted")


def one_restart(kubelet):
    """Returns a script for Kubelet. Worker 1 fails once, with a retryable exit code. Worker 0
    succeeds as soon as the parameter server and worker 1's second pod are running. In the steady
    job, worker 0 keeps running. In the paused job, no worker ends."""
    def script(index, attempt):
        job, kind, number = index
        if kind != "worker" or job == PAUSED:
            return None
        if number == "1":
            return RETRYABLE if attempt == 0 else None
        if job == STEADY:
            return None
        second = len(kubelet().attempts[(job, "worker", "1")]) > 1 and kubelet().running((job, "worker", "1"))
        return 0 if second and kubelet().running((job, "ps", "0")) else None
    return script


class FaultsCase(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Cluster())
        cls.cluster.install_crd()
        cls.program = os.environ.get("TFJOB_OPERATOR") or build_operator()
        cls.logs = pathlib.Path(os.environ.get("TFJOB_TEST_LOGS") or tempfile.mkdtemp())
        cls.numbers = itertools.count()

    def setUp(self):
        self.namespace = f"faults-{next(self.numbers)}"
        self.cluster.create_namespace(self.namespace)
        self.api = self.enterContext(self.cluster.api())
        self.kubelet = self.enterContext(
            Kubelet(self.cluster.api(), self.namespace, one_restart(lambda: self.kubelet)))
        self.proxies = []
        self.proxy = self.add_proxy()

    def add_proxy(self, **options):
        """Starts another proxy, whose requests count as requests of this test."""
        self.proxies.append(self.enterContext(FaultProxy(self.cluster, **options)))
        return self.proxies[-1]

    def operator(self, *flags, kubeconfig=None, environment=None, log=None):
        """Starts an operator that watches this test's namespace through the proxy."""
        log = log or self.logs / f"{self.id().rpartition('.')[2]}.log"
        if not any(flag.startswith("--leader-elect") for flag in flags):
            flags = ("--leader-elect=false", *flags)
        return self.enterContext(Operator(self.program, kubeconfig or self.proxy.kubeconfig, f"--namespace={self.namespace}",
                                          *flags, log=log, environment=environment))

    def create(self, name="job", change=lambda job: None):
        """Creates a job that one_restart() controls. Calls change(job) first."""
        job = tfjob(name, workers=2, ps=1, restart_policy="ExitCode", run_policy={"cleanPodPolicy": "Running"})
        change(job)
        self.api.create(kube.tfjobs(self.namespace), job)

    def job(self, name="job"):
        return self.api.get(kube.tfjobs(self.namespace) + "/" + name)

    def ended(self, name="job"):
        return condition(self.job(name), "Succeeded")

    def change(self, patch, name="job"):
        self.api.patch(kube.tfjobs(self.namespace) + "/" + name, patch)

    def suspend(self, name, value=True):
        self.change({"spec": {"runPolicy": {"suspend": value}}}, name)

    def delete(self, name):
        self.api.delete(kube.tfjobs(self.namespace) + "/" + name)

    def expect_life(self, name="job", seconds=60, tend=lambda: None):
        """Checks that the job succeeds, and that its pods, restarts and conditions are the same as
        without faults. Calls tend() repeatedly while waiting."""
        poll(f"{name} succeeded", seconds, lambda: tend() or self.ended(name), every=0.05)
        poll("services and running pods are gone", 30, lambda: tend() or not self.left(name), every=0.05)
        self.assertFalse(condition(self.job(name), "Failed"))
        self.expect_pods(name)
        self.assertEqual(self.job(name)["status"]["replicaStatuses"]["Worker"].get("restarts"), 1)
        self.assertEqual(self.kubelet.violations, [])

    def children(self, name, resource):
        """Returns a job's pods or services."""
        return self.api.items(kube.core(self.namespace, resource) + "?labelSelector=training.kubeflow.org/job-name=" + name)

    def left(self, name):
        """Returns the services and pods that should have been deleted when the job ended."""
        return self.children(name, "services") or [
            pod for pod in self.children(name, "pods") if pod["status"].get("phase") == "Running"]

    def expect_calm(self, seconds=5, quiet=2):
        """Checks that every status agrees with the objects within `seconds`, and that the operator
        then stops writing: there must soon be `quiet` seconds without a write."""
        def right():
            if found := violations(self.api, self.namespace):
                raise AssertionError("; ".join(found))
            return True
        poll("no violation", seconds, right)
        poll(f"{quiet} seconds without a write", 30 + quiet, lambda: time.monotonic() - self.writes()[-1].time > quiet)
        self.assertEqual(violations(self.api, self.namespace), [])
        self.assertEqual(self.kubelet.violations, [])

    def events(self, name="job"):
        """Returns the messages of the job's Warning events."""
        return [event.get("note") or event.get("message") or "" for event in
                self.api.items(f"/apis/events.k8s.io/v1/namespaces/{self.namespace}/events")
                if event["type"] == "Warning" and event["regarding"].get("name") == name]

    def writes(self):
        requests = [request for proxy in self.proxies for request in proxy.requests
                    if request.write and "/leases" not in request.path]
        return sorted(requests, key=lambda request: request.time)

    def create_bystanders(self):
        """Creates jobs that do not end: one keeps running, and disturb_bystanders() suspends or
        deletes the others."""
        for name in BYSTANDERS:
            self.create(name)

    def disturb_bystanders(self):
        self.suspend(PAUSED)
        self.delete(DELETED)

    def expect_bystanders(self, seconds=90):
        """Checks that the steady job runs again, the paused job is suspended and the deleted job is
        gone. Does not compare statuses with pods, because expect_calm() does this."""
        poll("steady runs again", seconds, lambda: condition(self.job(STEADY), "Running") and
             self.job(STEADY)["status"].get("ready") == "3/3" and self.job(STEADY)["status"].get("restarts") == 1)
        self.expect_pods(STEADY)
        poll("paused is suspended", seconds, lambda: condition(self.job(PAUSED), "Suspended"))
        again = {index: uids for index, uids in self.kubelet.attempts.items() if index[0] == PAUSED and len(uids) > 1}
        self.assertEqual(again, {})
        poll("nothing is left of what was deleted", seconds, lambda: not (
            self.children(DELETED, "pods") or self.children(DELETED, "services")))

    def with_jobs(self, disturb, jobs=10):
        """Creates jobs, calls disturb() while they run, creates more jobs, and checks that all
        succeed. Bystanders are suspended or deleted shortly before disturb()."""
        self.operator()
        self.create_bystanders()
        for i in range(jobs):
            self.create(f"before-{i}")
        self.disturb_bystanders()
        disturb()
        for i in range(jobs):
            self.create(f"after-{i}")
        for when, i in itertools.product(("before", "after"), range(jobs)):
            poll(f"{when}-{i} succeeded", 90, lambda when=when, i=i: self.ended(f"{when}-{i}"))
        pods = collections.Counter(len(uids) for index, uids in self.kubelet.attempts.items()
                                   if index[0].startswith(("before-", "after-")))
        self.assertEqual(pods, {1: 2 * 2 * jobs, 2: 2 * jobs})
        self.expect_bystanders()
        self.expect_calm()

    def expect_lives(self, rule, jobs=5, seconds=90, change=lambda job: None, environment=None, given=lambda: True):
        """Checks that several jobs run as usual while the proxy applies `rule`. The rule remains in
        effect at least until given() is true."""
        self.proxy.rule = rule
        self.operator(environment=environment)
        self.create_bystanders()
        for i in range(jobs):
            self.create(f"job-{i}", change)
        self.disturb_bystanders()
        for i in range(jobs):
            self.expect_job(f"job-{i}", seconds)
        self.expect_bystanders(seconds)
        poll("the rule has done its work", seconds, given)
        self.proxy.rule = None
        self.expect_calm()

    def expect_pods(self, name):
        """Checks that each index had as many pods as without faults. If not, reports the pods that
        existed, the clients that deleted pods, and the operator's writes."""
        attempts = {index[1:]: uids for index, uids in self.kubelet.attempts.items() if index[0] == name}
        counts = {index: len(uids) for index, uids in attempts.items()}
        if counts == {("ps", "0"): 1, ("worker", "0"): 1, ("worker", "1"): 2}:
            return
        told = [f"{request.time:.3f} {request.code} {request} {request.body.decode(errors='replace')[:200]}"
                for request in self.writes() if name in request.path + request.body.decode(errors="replace")]
        self.fail("\n".join([f"pods by replica: {attempts}", *self.cluster.pod_deletions(self.namespace), *told]))

    def expect_job(self, name, seconds):
        poll(f"{name} succeeded", seconds, lambda: self.ended(name))
        self.expect_pods(name)
        self.assertEqual(self.job(name)["status"]["replicaStatuses"]["Worker"].get("restarts"), 1)
