"""Tests the operator with odd objects: TFJobs that the API server stores, but that no operator can
read completely or run."""
import json
import os
import re
import time

from harness import api as kube
from harness.cluster import ROOT, poll
from harness.jobs import tfjob
from harness.process import memory_mb

from .case import FaultsCase

HEALTHY = 10
# The maximum time from the creation of the healthy jobs to the creation of their pods. Shards that run in parallel each
# have their own cluster, which needs most of the processors for seconds at a time.
MOST_SECONDS = 5 if os.environ.get("TFJOB_SHARD", "1/1") == "1/1" else 20
LEASE_SECONDS = 15  # from the time at which a new process first reads the killed one's Lease
START_SECONDS = 1  # from the start of a process to its first call
REPLICAS = (("ps", "0"), ("worker", "0"), ("worker", "1"))


def nested(levels, opening, closing):
    return opening * levels + "1" + closing * levels


# JSON texts for a field of the pod template. The API server stores the field as it is.
UNREADABLE = {
    "deep-300": nested(300, '{"x":', "}"),
    "deep-3000": nested(3000, "[", "]"),
    "deep-9000": nested(9000, "[", "]"),
    **{f"empty-{i}": "[" + "{}," * 466_000 + "{}]" for i in range(20)},  # 1.4 MB each
}
ODD = "spec.tfReplicaSpecs.Worker.template.odd"
# A part of the condition's message for each job that fails. The operator searches up to twelve
# levels for the part that it cannot read.
PROBLEMS = {
    "deep-300": ODD + ".x" * 7 + ": nested deeper than 200 levels",
    "deep-3000": ODD + "[0]" * 7 + ": nested deeper than 200 levels",
    "deep-9000": ODD + "[0]" * 7 + ": nested deeper than 200 levels",
    **{f"empty-{i}": ODD + ": with it, the object has more than 50000 JSON values" for i in range(20)},
    "huge": "spec.tfReplicaSpecs: the job has 100000 replicas, but this operator runs jobs with at most 5000",
}
# The API server stores these numbers as floating-point numbers, and prints the first and the last
# of them without an exponent.
NUMBERS = {"number-1e20": "100000000000000000000", "number-1e300": "1e300", "number-2-64": "18446744073709551616"}


def memory_limit_mb():
    """Returns the chart's memory limit."""
    values = (ROOT / "charts/tfjob-operator/values.yaml").read_text(encoding="utf-8")
    return int(re.search(r"limits:\n(?:\s+cpu:.*\n)?\s+memory: (\d+)Mi", values).group(1))


class ObjectFaults(FaultsCase):
    def create_odd(self, name, field):
        """Creates a job whose template has this JSON text as a field. The job is written as text,
        because Python's encoder cannot print such values."""
        job = tfjob(name, workers=2, ps=1)
        job["spec"]["tfReplicaSpecs"]["Worker"]["template"]["odd"] = "ODD"
        body = json.dumps(job).replace('"ODD"', field)
        code, answer = self.api.raw("POST", kube.tfjobs(self.namespace), body, {"Content-Type": "application/json"})
        self.assertEqual(code, 201, f"{name}: {answer[:300]}")

    def create_huge(self):
        """Creates a job with as many replicas as the CRD allows."""
        self.api.create(kube.tfjobs(self.namespace), tfjob("huge", workers=100_000, ps=0))

    def expect_pods_of(self, prefix, since):
        """Checks that every healthy job with this prefix has its pods within MOST_SECONDS after
        `since`."""
        left = {(f"{prefix}-{i}", *replica) for i in range(HEALTHY) for replica in REPLICAS}
        while left and time.monotonic() < since + MOST_SECONDS:
            # A pod may already be gone again. It is enough that the kubelet has seen the pod.
            left = {index for index in left if not self.kubelet.attempts.get(index)}
            time.sleep(0.01)
        self.assertEqual(left, set(), f"without pods after {time.monotonic() - since:.1f} s")

    def create_healthy(self, prefix):
        for i in range(HEALTHY):
            self.create(f"{prefix}-{i}")

    def holder(self):
        lease = self.api.find(f"/apis/coordination.k8s.io/v1/namespaces/{self.namespace}/leases/"
                              "1ca428e5.training-operator.kubeflow.org")
        return (lease or {}).get("spec", {}).get("holderIdentity")

    def states(self):
        return self.api.column(kube.tfjobs(self.namespace), "State")

    def conditions(self, name):
        """Returns a job's conditions. Reads only the last part of the JSON, which contains them,
        because Python's decoder cannot read thousands of levels."""
        code, answer = self.api.raw("GET", kube.tfjobs(self.namespace) + "/" + name)
        self.assertEqual(code, 200, answer[:300])
        text = answer.decode()
        key = '"conditions":'
        return json.JSONDecoder().raw_decode(text, text.rindex(key) + len(key))[0]

    def expect_failures(self):
        """Checks that every job that cannot run has failed, that its condition states the path and
        the reason, and that no objects were created for the job."""
        states = self.states()
        self.assertEqual({name: states[name] for name in PROBLEMS}, dict.fromkeys(PROBLEMS, "Failed"))
        for name, problem in PROBLEMS.items():
            failed = next(c for c in self.conditions(name) if c["type"] == "Failed")
            self.assertIn(problem, failed["message"], name)
        self.assertEqual(self.children("huge", "services"), [])
        self.assertEqual([index for index in list(self.kubelet.attempts) if index[0] in PROBLEMS], [])

    def expect_memory(self, operator):
        self.assertLess(memory_mb(operator.pid), memory_limit_mb())

    def test_odd_jobs_fail_by_themselves(self):
        operator = self.operator("--leader-elect", f"--leader-election-namespace={self.namespace}")
        poll("the operator leads", LEASE_SECONDS + START_SECONDS, self.holder)
        operator.wait_ready()
        for name, field in {**UNREADABLE, **NUMBERS}.items():
            self.create_odd(name, field)
        self.create_huge()
        created = time.monotonic()
        self.create_healthy("beside")
        self.expect_pods_of("beside", created)
        poll("the jobs that cannot run have failed", 30, lambda: all(self.states()[name] == "Failed" for name in PROBLEMS))
        self.expect_failures()

        before = self.holder()
        self.expect_memory(operator)
        operator.kill()
        self.create_healthy("later")
        operator.start()
        poll("the new process holds the lease", LEASE_SECONDS + START_SECONDS,
             lambda: self.holder() not in (None, "", before), every=0.02)
        self.expect_pods_of("later", time.monotonic())
        operator.wait_ready()
        # Numbers of any size can be read, so these jobs run.
        poll("jobs with large numbers have pods", 30, lambda: all(
            self.kubelet.attempts.get((name, *replica)) for name in NUMBERS for replica in REPLICAS))
        self.expect_failures()
        self.expect_memory(operator)
