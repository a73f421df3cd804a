#!/usr/bin/env python3
"""Tests the operator with Kubernetes' own gang scheduling, which is enabled in the API server and
the scheduler. The nodes are fake."""
import os
import unittest

from harness import api as kube
from harness.cluster import Cluster, poll
from harness.jobs import condition, replicas, tfjob
from harness.process import Operator, build_operator

GATES = "GenericWorkload=true,GangScheduling=true"
API = "scheduling.k8s.io/v1alpha2"  # the version that Kubernetes 1.36 serves
NAMESPACE = "gang"


def groups(resource):
    return f"/apis/{API}/namespaces/{NAMESPACE}/{resource}"


class NativeGangTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        flags = ["--feature-gates", GATES, "--runtime-config", f"{API}=true"]
        cls.cluster = cls.enterClassContext(Cluster(fake_nodes=2, flags=flags))
        cls.cluster.install_crd()
        cls.cluster.create_namespace(NAMESPACE)
        cls.api = cls.cluster.api()
        program = os.environ.get("TFJOB_OPERATOR") or build_operator()
        cls.enterClassContext(Operator(program, cls.cluster.kubeconfig, f"--namespace={NAMESPACE}", "--leader-elect=false",
                                       log=os.environ.get("TFJOB_TEST_LOG")))

    def create(self, name, job):
        job["metadata"] = {"name": name, "annotations": {"tfjob.dev/gang-scheduler": "native"}}
        self.api.create(kube.tfjobs(NAMESPACE), job)

    def job(self, name):
        return self.api.get(kube.tfjobs(NAMESPACE) + "/" + name)

    def pods(self, name):
        pods = self.api.items(kube.core(NAMESPACE, "pods"))
        return [pod for pod in pods if pod["metadata"]["labels"]["training.kubeflow.org/job-name"] == name]

    def reasons(self, name):
        events = self.api.items(kube.core(NAMESPACE, "events"))
        return {event["reason"] for event in events if event["involvedObject"]["name"] == name}

    def test_a_gang_is_placed_together_and_leaves_nothing(self):
        self.create("whole", tfjob("whole", workers=3, ps=1, run_policy={"cleanPodPolicy": "All"}))
        poll("the job runs", 60, lambda: condition(self.job("whole"), "Running"))
        group = self.api.get(groups("podgroups/whole"))
        workload = self.api.get(groups("workloads/whole"))
        self.assertEqual(group["spec"]["schedulingPolicy"], {"gang": {"minCount": 4}})
        self.assertEqual(group["spec"]["podGroupTemplateRef"]["workload"]["workloadName"], "whole")
        for made in (group, workload):
            self.assertEqual([owner["uid"] for owner in made["metadata"]["ownerReferences"]],
                             [self.job("whole")["metadata"]["uid"]])
        pods = self.pods("whole")
        self.assertEqual([pod["spec"]["schedulingGroup"] for pod in pods], [{"podGroupName": "whole"}] * 4)
        poll("the scheduler says so", 30, lambda: any(
            c["type"] == "PodGroupScheduled" and c["status"] == "True"
            for c in self.api.get(groups("podgroups/whole"))["status"]["conditions"]))
        self.assertNotIn("SchedulingGroupDropped", self.reasons("whole"))

        self.api.patch(kube.tfjobs(NAMESPACE) + "/whole", {"spec": {"runPolicy": {"suspend": True}}})
        poll("group and workload are gone", 60, lambda: not self.pods("whole") and
             not self.api.find(groups("podgroups/whole")) and not self.api.find(groups("workloads/whole")))
        self.api.patch(kube.tfjobs(NAMESPACE) + "/whole",
                       {"spec": {"runPolicy": {"suspend": False}, "tfReplicaSpecs": {"Worker": {"replicas": 2}}}})
        poll("the job runs again", 60, lambda: condition(self.job("whole"), "Running"))
        self.assertEqual(self.api.get(groups("podgroups/whole"))["spec"]["schedulingPolicy"], {"gang": {"minCount": 3}})

        self.api.patch(kube.tfjobs(NAMESPACE) + "/whole", {"spec": {"runPolicy": {"activeDeadlineSeconds": 1}}})
        poll("the job ends", 60, lambda: condition(self.job("whole"), "Failed"))
        poll("nothing is left", 60, lambda: not self.pods("whole") and
             not self.api.find(groups("podgroups/whole")) and not self.api.find(groups("workloads/whole")))

    def test_a_gang_without_room_starts_nothing(self):
        job = tfjob("large", workers=2, ps=0)
        job["spec"]["tfReplicaSpecs"]["PS"] = replicas(1)
        job["spec"]["tfReplicaSpecs"]["PS"]["template"]["spec"]["nodeSelector"] = {"no": "such-node"}
        self.create("large", job)
        poll("the scheduler has tried", 60, lambda: any(
            c["type"] == "PodGroupScheduled" and c["status"] == "False"
            for c in self.api.get(groups("podgroups/large"))["status"].get("conditions") or []))
        self.assertEqual([pod["spec"].get("nodeName") for pod in self.pods("large")], [None] * 3)
        self.api.delete(kube.tfjobs(NAMESPACE) + "/large")
        poll("nothing is left", 60, lambda: not self.pods("large") and
             not self.api.find(groups("podgroups/large")) and not self.api.find(groups("workloads/large")))


if __name__ == "__main__":
    unittest.main()
