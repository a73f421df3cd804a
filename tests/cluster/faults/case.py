"""What the cases share: a cluster, and for each test a namespace with its kubelet, a fault proxy and jobs' lives."""
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

RETRYABLE = 130  # an exit code from 128 on, under ExitCode


def one_restart(kubelet):
    """Worker 1 fails once in a way that may be repeated; worker 0 ends well when worker 1 runs for the second time, and the
    parameter server too."""
    def script(index, attempt):
        job, kind, number = index
        if kind != "worker":
            return None
        if number == "1":
            return RETRYABLE if attempt == 0 else None
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
        self.proxy = self.enterContext(FaultProxy(self.cluster))

    def operator(self, *flags, kubeconfig=None, environment=None):
        """One that looks after this test's namespace, through the proxy."""
        log = self.logs / f"{self.id().rpartition('.')[2]}.log"
        if not any(flag.startswith("--leader-elect") for flag in flags):
            flags = ("--leader-elect=false", *flags)
        return self.enterContext(Operator(self.program, kubeconfig or self.proxy.kubeconfig, f"--namespace={self.namespace}",
                                          *flags, log=log, environment=environment))

    def create(self, name="job", change=lambda job: None):
        """A job as tests know its life; `change` is called with it before."""
        job = tfjob(name, workers=2, ps=1, restart_policy="ExitCode", run_policy={"cleanPodPolicy": "Running"})
        change(job)
        self.api.create(kube.tfjobs(self.namespace), job)

    def job(self, name="job"):
        return self.api.get(kube.tfjobs(self.namespace) + "/" + name)

    def ended(self, name="job"):
        return condition(self.job(name), "Succeeded")

    def expect_life(self, name="job", seconds=60, tend=lambda: None):
        """The job succeeds; its pods, restarts and conditions are those of an undisturbed life. `tend` is called again and
        again meanwhile."""
        poll(f"{name} succeeded", seconds, lambda: tend() or self.ended(name), every=0.05)
        poll("services and running pods are gone", 30, lambda: tend() or not self.left(), every=0.05)
        self.assertFalse(condition(self.job(name), "Failed"))
        self.expect_pods(name)
        self.assertEqual(self.job(name)["status"]["replicaStatuses"]["Worker"].get("restarts"), 1)
        self.assertEqual(self.kubelet.violations, [])

    def left(self):
        """What the end of all jobs should have taken away."""
        pods = self.api.items(kube.core(self.namespace, "pods"))
        return self.api.items(kube.core(self.namespace, "services")) or [
            pod for pod in pods if pod["status"].get("phase") == "Running"]

    def expect_calm(self, seconds=5):
        """Within so many seconds status says what is; and some time later nothing is written any more."""
        def right():
            if found := violations(self.api, self.namespace):
                raise AssertionError("; ".join(found))
            return True
        poll("no violation", seconds, right)
        poll("two seconds without a write", 30, lambda: time.monotonic() - self.writes()[-1].time > 2)

    def writes(self):
        return [request for request in self.proxy.requests if request.write and "/leases" not in request.path]

    def with_jobs(self, disturb, jobs=10):
        """Jobs are created before, while and after `disturb` does its work."""
        self.operator()
        for i in range(jobs):
            self.create(f"before-{i}")
        disturb()
        for i in range(jobs):
            self.create(f"after-{i}")
        for when, i in itertools.product(("before", "after"), range(jobs)):
            poll(f"{when}-{i} succeeded", 90, lambda when=when, i=i: self.ended(f"{when}-{i}"))
        pods = collections.Counter(len(uids) for uids in self.kubelet.attempts.values())
        self.assertEqual(pods, {1: 2 * 2 * jobs, 2: 2 * jobs})
        self.assertEqual(self.kubelet.violations, [])
        self.expect_calm()

    def expect_lives(self, rule, jobs=5, seconds=90):
        """Several jobs live as ever under a rule of the proxy."""
        self.proxy.rule = rule
        self.operator()
        for i in range(jobs):
            self.create(f"job-{i}")
        for i in range(jobs):
            self.expect_job(f"job-{i}", seconds)
        self.assertEqual(self.kubelet.violations, [])
        self.proxy.rule = None
        self.expect_calm()

    def expect_pods(self, name):
        """Each index had the pods of an undisturbed life; else it is told which pods there were and who wrote what."""
        attempts = {index[1:]: uids for index, uids in self.kubelet.attempts.items() if index[0] == name}
        told = [f"{request.time:.3f} {request.code} {request} {request.body.decode(errors='replace')[:200]}"
                for request in self.writes() if name in request.path + request.body.decode(errors="replace")]
        self.assertEqual({index: len(uids) for index, uids in attempts.items()},
                         {("ps", "0"): 1, ("worker", "0"): 1, ("worker", "1"): 2}, "\n".join([str(attempts), *told]))

    def expect_job(self, name, seconds):
        poll(f"{name} succeeded", seconds, lambda: self.ended(name))
        self.expect_pods(name)
        self.assertEqual(self.job(name)["status"]["replicaStatuses"]["Worker"].get("restarts"), 1)
