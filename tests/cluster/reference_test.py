"""Runs manifests like the examples of the Training Operator and tf-operator (crd/accepted) on an
API server. Checks that pods, services and TF_CONFIG are those that these two operators would
create."""
import json
import os
import pathlib
import tempfile
import unittest

from harness import api as kube
from harness.cluster import Cluster, poll
from harness.jobs import condition
from harness.kubelet import Kubelet
from harness.process import Operator, build_operator

ACCEPTED = pathlib.Path(__file__).with_name("crd") / "accepted"
LABEL = "training.kubeflow.org/"


def addresses(job, kind, count, port=2222, namespace="default"):
    return [f"{job}-{kind}-{i}.{namespace}.svc:{port}" for i in range(count)]


def tf_config(cluster, kind, index):
    """Returns the expected TF_CONFIG of a task in a job of fixed size: no spaces, and these members
    in this order."""
    return json.dumps({"cluster": dict(sorted(cluster.items())), "task": {"type": kind, "index": index},
                       "environment": "cloud"}, separators=(",", ":"))


def environment(container):
    return {variable["name"]: variable.get("value") for variable in container.get("env") or []}


class ReferenceTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Cluster())
        cls.cluster.install_crd()
        cls.api = cls.cluster.api()
        cls.cluster.create_namespace("kubeflow")
        cls.api.create(kube.core("default", "serviceaccounts"), {"metadata": {"name": "trainer"}})
        program = os.environ.get("TFJOB_OPERATOR") or build_operator()
        logs = pathlib.Path(os.environ.get("TFJOB_TEST_LOGS") or tempfile.mkdtemp())
        cls.enterClassContext(Operator(program, cls.cluster.kubeconfig, "--leader-elect=false", log=logs / "reference_test.log"))

    def apply(self, manifest, replicas, namespace="default"):
        """Applies a manifest, and waits until the pods and services of `replicas`, {type: count},
        exist. Returns the job, {name: pod} and {name: service}."""
        self.cluster.kubectl("apply", "-f", str(ACCEPTED / f"{manifest}.yaml"))
        job = json.loads(self.cluster.kubectl("get", "-f", str(ACCEPTED / f"{manifest}.yaml"), "-o", "json"))
        name = job["metadata"]["name"]
        wanted = {f"{name}-{kind}-{i}" for kind, count in replicas.items() for i in range(count)}

        def of_job(resource):
            return {item["metadata"]["name"]: item for item in
                    self.api.items(kube.core(namespace, resource) + f"?labelSelector={LABEL}job-name%3D{name}")}
        poll("its pods and services", 20, lambda: wanted <= set(of_job("pods")) and wanted <= set(of_job("services")))
        pods, services = of_job("pods"), of_job("services")
        self.assertEqual((set(pods), set(services)), (wanted, wanted))
        return job, pods, services

    def check(self, manifest, replicas, master, namespace="default", ports=None):
        """Checks the properties that all jobs have in common. Returns the TF_CONFIGs as
        {"worker-0": text or None}."""
        job, pods, services = self.apply(manifest, replicas, namespace)
        templates = {kind.lower(): spec for kind, spec in job["spec"]["tfReplicaSpecs"].items()}
        for kind, count in replicas.items():
            for i in range(count):
                name = f"{job['metadata']['name']}-{kind}-{i}"
                with self.subTest(name):
                    labels = {f"{LABEL}operator-name": "tfjob-controller", f"{LABEL}job-name": job["metadata"]["name"],
                              f"{LABEL}replica-type": kind, f"{LABEL}replica-index": str(i)}
                    is_master = kind == master or f"{kind}-{i}" == master
                    self.check_owner(pods[name], job)
                    self.check_owner(services[name], job)
                    self.check_pod(pods[name], templates[kind], labels | ({f"{LABEL}job-role": "master"} if is_master else {}))
                    self.check_service(services[name], labels, ports or {"tfjob-port": 2222})
        prefix = len(job["metadata"]["name"]) + 1
        return {name[prefix:]: environment(pod["spec"]["containers"][0]).get("TF_CONFIG") for name, pod in pods.items()}

    def check_owner(self, item, job):
        self.assertEqual(item["metadata"]["ownerReferences"], [
            {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "name": job["metadata"]["name"], "uid": job["metadata"]["uid"],
             "controller": True, "blockOwnerDeletion": True}])

    def check_pod(self, pod, replica, labels):
        metadata, template = replica["template"].get("metadata") or {}, replica["template"]["spec"]
        ours = {"tfjob.dev/attempt": "0"}  # the reference operator does not set it
        self.assertEqual(pod["metadata"]["labels"], {**metadata.get("labels", {}), **labels, **ours})
        self.assertEqual(pod["metadata"].get("annotations", {}), metadata.get("annotations", {}))
        self.assertEqual(pod["metadata"].get("finalizers"), metadata.get("finalizers"))
        policy = replica.get("restartPolicy") or "Never"
        self.assertEqual(pod["spec"]["restartPolicy"], "Never" if policy == "ExitCode" else policy)
        self.assertEqual(len(pod["spec"]["containers"]), len(template["containers"]))
        for got, wanted in zip(pod["spec"]["containers"], template["containers"]):
            for key in ("name", "image", "command", "args"):
                self.assertEqual(got.get(key), wanted.get(key))
            for limit, value in wanted.get("resources", {}).get("limits", {}).items():
                self.assertEqual(got["resources"]["limits"][limit], str(value))
            for key in ("env", "volumeMounts", "ports"):  # the pod may have more of these
                for item in wanted.get(key) or []:
                    self.assertTrue(any(item.items() <= other.items() for other in got[key]), (key, item))
        for volume in template.get("volumes") or []:
            self.assertIn(volume, pod["spec"]["volumes"])

    def check_service(self, service, labels, ports):
        self.assertEqual(service["metadata"]["labels"], labels)
        self.assertEqual((service["spec"]["clusterIP"], service["spec"]["selector"]), ("None", labels))
        self.assertEqual({port["name"]: (port["port"], port["targetPort"], port["protocol"]) for port in
                          service["spec"]["ports"]}, {name: (port, port, "TCP") for name, port in ports.items()})

    def expect_configs(self, got, cluster):
        self.assertEqual(got, {f"{kind}-{i}": tf_config(cluster, kind, i)
                               for kind, tasks in cluster.items() for i in range(len(tasks))})

    def test_workers_alone(self):
        got = self.check("simple", {"worker": 2}, master="worker-0", namespace="kubeflow")
        self.expect_configs(got, {"worker": addresses("tfjob-simple", "worker", 2, namespace="kubeflow")})

    def test_a_chief_a_parameter_server_and_workers(self):
        got = self.check("chief-ps-workers", {"chief": 1, "ps": 1, "worker": 2}, master="chief", namespace="kubeflow")
        self.assertEqual(got["worker-1"], (
            '{"cluster":{"chief":["dist-mnist-chief-0.kubeflow.svc:2222"],"ps":["dist-mnist-ps-0.kubeflow.svc:2222"],'
            '"worker":["dist-mnist-worker-0.kubeflow.svc:2222","dist-mnist-worker-1.kubeflow.svc:2222"]},'
            '"task":{"type":"worker","index":1},"environment":"cloud"}'))
        self.expect_configs(got, {kind: addresses("dist-mnist", kind, count, namespace="kubeflow")
                                  for kind, count in (("chief", 1), ("ps", 1), ("worker", 2))})

    def test_parameter_servers_and_workers(self):
        name = "dist-mnist-for-e2e-test"
        got = self.check("ps-workers-never", {"ps": 2, "worker": 4}, master="worker-0")
        self.expect_configs(got, {"ps": addresses(name, "ps", 2), "worker": addresses(name, "worker", 4)})

    def test_workers_with_a_claim_and_gpus(self):
        got = self.check("multi-worker-strategy", {"worker": 2}, master="worker-0")
        self.expect_configs(got, {"worker": addresses("multi-worker", "worker", 2)})

    def test_one_worker_is_local(self):
        got = self.check("summaries-with-claim", {"worker": 1}, master="worker-0", namespace="kubeflow")
        self.assertEqual(got, {"worker-0": None})

    def test_an_evaluator_is_of_the_cluster_and_ports_are_the_manifests_own(self):
        replicas = {"chief": 1, "ps": 2, "worker": 3, "evaluator": 1}
        got = self.check("estimator-with-evaluator", replicas, master="chief", ports={"tfjob-port": 3333, "debug": 6064})
        self.expect_configs(got, {kind: addresses("distributed-training", kind, count, port=3333)
                                  for kind, count in replicas.items()})

    def test_types_of_any_case_in_a_job_that_may_grow(self):
        """The TF_CONFIG of each task contains the task itself and the parameter servers. This is
        also true for the master, although the Training Operator writes an empty cluster for a
        master."""
        got = self.check("lower-case-types", {"master": 1, "ps": 1, "worker": 2}, master="master")
        servers = addresses("lower-case", "ps", 1)
        workers = addresses("lower-case", "worker", 2)
        compact = lambda value: json.dumps(value, separators=(",", ":"))  # noqa: E731
        for i in range(2):
            self.assertEqual(got[f"worker-{i}"], compact(
                {"cluster": {"worker": {str(i): workers[i]}, "ps": servers}, "task": {"type": "worker", "index": i}}))
        self.assertEqual(got["ps-0"], compact(
            {"cluster": {"worker": {}, "ps": servers}, "task": {"type": "ps", "index": 0}}))
        self.assertEqual(json.loads(got["master-0"]), {
            "cluster": {"worker": {}, "ps": servers, "master": addresses("lower-case", "master", 1)},
            "task": {"type": "master", "index": 0}})

    def test_pods_and_job_go_when_the_manifest_says_so(self):
        got = self.check_ports_of_types()
        self.expect_configs(got, {"ps": addresses("clean-up", "ps", 1), "worker": addresses("clean-up", "worker", 1)})
        job = kube.tfjobs("default") + "/clean-up"
        end = lambda index, _: 0 if index[:2] == ("clean-up", "worker") else None  # noqa: E731
        with Kubelet(self.cluster.api(), "default", end):
            poll("it succeeded", 20, lambda: condition(self.api.get(job), "Succeeded"), every=0.05)
            left = lambda resource: self.api.items(  # noqa: E731
                kube.core("default", resource) + f"?labelSelector={LABEL}job-name%3Dclean-up")
            poll("all pods and services are gone", 10, lambda: not left("pods") and not left("services"), every=0.05)
            poll("the job is gone", 10, lambda: self.api.find(job) is None)

    def check_ports_of_types(self):
        """Checks a job in which each replica type has its own ports."""
        job, pods, services = self.apply("clean-up-and-ttl", {"ps": 1, "worker": 1})
        self.assertEqual(list(job["spec"]["tfReplicaSpecs"]), ["ps", "worker"])  # stored as written
        ports = {name: sorted((port["name"], port["port"]) for port in service["spec"]["ports"])
                 for name, service in services.items()}
        self.assertEqual(ports, {"clean-up-ps-0": [("tfjob-port", 2222)],
                                 "clean-up-worker-0": [("http", 8000), ("tfjob-port", 2222)]})
        return {name.removeprefix("clean-up-"): environment(pod["spec"]["containers"][0])["TF_CONFIG"]
                for name, pod in pods.items()}


if __name__ == "__main__":
    unittest.main()
