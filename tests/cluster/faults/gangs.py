"""Tests gang scheduling by Volcano and scheduler-plugins. Only the CRDs of their PodGroups are
installed; the test acts as the scheduler. Covers the operator's writes, a quota that is too small
for a whole gang, scaled jobs, and a scheduler that writes at the same time."""
from harness import api as kube
from harness.cluster import poll
from harness.jobs import condition

from .case import PAUSED, STEADY, FaultsCase

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def gang(scheduler):
    def change(job):
        job["metadata"]["annotations"] = {"tfjob.dev/gang-scheduler": scheduler}
    return change


class GangFaults(FaultsCase):
    def define_groups(self, group, version):
        """Installs a CRD for pod groups until the end of the test. Sets self.groups to the path of
        the pod groups in this namespace."""
        schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        names = {"plural": "podgroups", "singular": "podgroup", "kind": "PodGroup", "listKind": "PodGroupList"}
        name = f"podgroups.{group}"
        self.api.create(DEFINITIONS, {
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": name},
            "spec": {"group": group, "scope": "Namespaced", "names": names, "versions": [{
                "name": version, "served": True, "storage": True, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": schema}}]}})
        self.addCleanup(self.api.delete, f"{DEFINITIONS}/{name}")
        self.groups = f"/apis/{group}/{version}/namespaces/{self.namespace}/podgroups"
        poll("pod groups are served", 30, lambda: self.api.get(self.groups))

    def min_member(self, name):
        found = self.api.find(f"{self.groups}/{name}")
        return found and found["spec"]["minMember"]

    def scale(self, name, workers):
        self.change({"spec": {"tfReplicaSpecs": {"Worker": {"replicas": workers}}}}, name)

    def ready(self, name):
        return self.job(name)["status"].get("ready")

    def expect_scaling(self, admit=lambda name: True):
        """Checks that a gang can be scaled while it runs and while it is suspended. Calls
        admit(name) repeatedly while waiting for pods."""
        poll("all run", 30, lambda: admit(STEADY) and self.ready(STEADY) == "3/3")
        self.scale(STEADY, 3)
        poll("the group follows", 30, lambda: self.min_member(STEADY) == 4)
        poll("one more runs", 30, lambda: self.ready(STEADY) == "4/4")
        self.suspend(STEADY)
        poll("group and pods are gone", 30, lambda: self.min_member(STEADY) is None and not self.children(STEADY, "pods"))
        self.scale(STEADY, 1)
        self.suspend(STEADY, False)
        poll("a smaller one runs", 30, lambda: self.min_member(STEADY) == 2 and admit(STEADY) and self.ready(STEADY) == "2/2")

    def first(self, resource):
        """Returns the time at which the operator first requested the creation of an object of this
        kind."""
        return next(request.time for request in self.writes() if request.method == "POST" and request.path.endswith(resource))

    def test_a_quota_is_used_up_amid_a_gang(self):
        self.define_groups("scheduling.x-k8s.io", "v1alpha1")
        quota = kube.core(self.namespace, "resourcequotas")
        self.api.create(quota, {"metadata": {"name": "pods"}, "spec": {"hard": {"pods": "2"}}})
        poll("the quota holds", 20, lambda: self.api.get(quota + "/pods")["status"].get("hard"))
        self.operator()
        self.create(PAUSED, gang("scheduler-plugins"))
        poll("two pods", 30, lambda: len(self.kubelet.attempts) == 2)
        poll("an event says what is missing", 30, lambda: any("exceeded quota: pods" in m for m in self.events(PAUSED)))
        self.assertEqual(self.min_member(PAUSED), 3)
        self.assertLess(self.first("/podgroups"), self.first("/pods"))
        self.api.patch(quota + "/pods", {"spec": {"hard": {"pods": "10"}}})
        poll("all run", 60, lambda: self.ready(PAUSED) == "3/3")
        self.create(change=gang("scheduler-plugins"))
        self.expect_life()
        poll("its group is gone", 30, lambda: self.min_member("job") is None)
        self.create(STEADY, gang("scheduler-plugins"))
        self.expect_scaling()
        self.expect_calm()

    def test_volcano_lets_gangs_in_and_writes(self):
        self.define_groups("scheduling.volcano.sh", "v1beta1")

        def let_in(name):
            if self.min_member(name):
                self.api.patch(f"{self.groups}/{name}/status", {"status": {"phase": "Inqueue"}})
            return True
        self.operator()
        self.create(change=gang("volcano"))
        poll("its group is there", 30, lambda: self.min_member("job") == 3)
        self.assertFalse(self.kubelet.attempts)
        self.expect_life(tend=lambda: let_in("job") and None)
        poll("its group is gone", 30, lambda: self.min_member("job") is None)
        self.create(STEADY, gang("volcano"))
        self.expect_scaling(let_in)
        self.expect_calm()
        written = len(self.writes())
        for i in range(50):
            self.api.patch(f"{self.groups}/{STEADY}/status", {"status": {"phase": "Running", "running": i, "conditions": [
                {"type": "Scheduled", "status": "True", "transitionID": str(i)}]}})
        self.expect_calm()
        self.assertEqual([str(request) for request in self.writes()[written:]], [])
        self.assertTrue(condition(self.job(STEADY), "Running"))
