"""The operator as users install it, on a node whose pods really run: Helm, kubectl, deploy/examples. TFJOB_TEST_IMAGES may
name a folder with images that deploy/docker/build.sh made."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time
import unittest

from harness.cluster import ROOT, Cluster, poll

EXAMPLES = ROOT / "deploy/examples"
MODELS = pathlib.Path("/var/tmp/tfjob")  # model_dir of the examples
KINDS = ("crd,clusterrole,clusterrolebinding,namespace,prioritylevelconfiguration,flowschema,validatingwebhookconfiguration,"
         "role,rolebinding,serviceaccount,deployment,replicaset,pod,service,endpointslice,configmap,secret,lease,"
         "poddisruptionbudget,networkpolicy")


class NodeTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        images = os.environ.get("TFJOB_TEST_IMAGES")
        if not images:
            images = tempfile.mkdtemp()
            cls.addClassCleanup(shutil.rmtree, images)
            subprocess.run([ROOT / "deploy/docker/build.sh", images], check=True)
        cls.cluster = cls.enterClassContext(Cluster(node=True))
        cls.cluster.load_images(f"{images}/operator.tar", f"{images}/trainer.tar")
        cls.before = cls.inventory()
        cls.cluster.helm("install", "tfjob-operator", str(ROOT / "charts/tfjob-operator"), "--namespace", "tfjob-system",
                         "--create-namespace", "--set", "crds.keep=false", "--wait", "--timeout", "2m")

    @classmethod
    def inventory(cls):
        """Every object, by kind, namespace and name; what belongs to each namespace and node is left out."""
        listing = cls.cluster.kubectl("get", KINDS, "--all-namespaces", "--ignore-not-found",
                                      "-o", "jsonpath={range .items[*]}{.kind}/{.metadata.namespace}/{.metadata.name}\n{end}")
        return {line for line in listing.split() if not re.search("/kube-root-ca.crt$|/default$|^Lease/kube-node-lease/", line)}

    def kubectl(self, *arguments, text=None):
        return self.cluster.kubectl(*arguments, text=text)

    def get(self, *arguments):
        return json.loads(self.kubectl("get", *arguments, "-o", "json"))

    def states(self, name):
        """Follows `kubectl get tfjob NAME -w`; call the result for the states that it has shown, each once."""
        out = tempfile.TemporaryFile("w+")
        watch = subprocess.Popen([self.cluster.programs / "kubectl", "--kubeconfig", self.cluster.kubeconfig, "get", "tfjob",
                                  name, "-w", "--no-headers"], stdout=out)
        self.addCleanup(out.close)
        self.addCleanup(watch.wait)
        self.addCleanup(watch.kill)

        def shown():
            out.seek(0)
            # The first line may come before the operator has said anything: then its second word is no state.
            seen = re.findall(r"^\S+ +([A-Z]\w*) ", out.read(), re.MULTILINE)
            return [state for i, state in enumerate(seen) if i == 0 or seen[i - 1] != state]

        return shown

    def train(self, example, seconds=900):
        """Applies an example, waits until it Succeeded, and returns the states on the way."""
        shutil.rmtree(MODELS / example, ignore_errors=True)
        self.addCleanup(shutil.rmtree, MODELS / example, ignore_errors=True)
        self.kubectl("apply", "-f", str(EXAMPLES / f"{example}.yaml"))
        states = self.states(example)
        try:
            self.kubectl("wait", "--for=condition=Succeeded", f"tfjob/{example}", f"--timeout={seconds}s")
        except subprocess.CalledProcessError:
            print(self.kubectl("describe", f"tfjob/{example}"), self.kubectl("get", "pods", "-o", "wide"))
            raise
        poll("the watch shows it", 10, lambda: states()[-1] == "Succeeded")
        return states()

    def remove(self, example):
        """Deletes an example; its pods and services go with it."""
        self.kubectl("delete", "-f", str(EXAMPLES / f"{example}.yaml"), "--timeout=60s")
        poll("nothing of the job is left", 60, lambda: not self.get(
            "pods,services", "-l", f"training.kubeflow.org/job-name={example}")["items"])

    def check_example(self, example, tasks):
        states = self.train(example)
        self.assertEqual(states, sorted(states, key=["Created", "Running", "Succeeded"].index))
        self.assertIn("Running", states)
        for task in tasks:
            self.assertTrue(self.kubectl("logs", f"{example}-{task}"), task)
        self.assertTrue(list((MODELS / example).glob("*.index")), "no checkpoint in model_dir")
        self.remove(example)

    def test_fashion_mnist(self):
        self.check_example("fashion-mnist", ["chief-0", "worker-0", "worker-1", "ps-0", "ps-1", "evaluator-0"])

    def test_fashion_mnist_sync(self):
        self.check_example("fashion-mnist-sync", ["chief-0", "worker-0", "worker-1", "ps-0", "ps-1", "evaluator-0"])

    @unittest.skipUnless(os.environ.get("TFJOB_DEEP"), "a million steps take minutes: deploy/test.sh --deep")
    def test_linear_regression(self):
        self.check_example("linear-regression", ["worker-0", "worker-1", "ps-0", "ps-1"])

    def test_local(self):
        self.check_example("local", ["worker-0"])

    def test_mnist_replica(self):
        self.check_example("mnist-replica", ["worker-0", "worker-1", "ps-0"])

    def test_a_running_job_is_scaled_suspended_and_resumed(self):
        name = "linear-regression"
        shutil.rmtree(MODELS / name, ignore_errors=True)
        self.addCleanup(shutil.rmtree, MODELS / name, ignore_errors=True)
        self.kubectl("apply", "--server-side", "-f", str(EXAMPLES / f"{name}.yaml"))
        self.kubectl("wait", "--for=condition=Running", f"tfjob/{name}", "--timeout=60s")
        pods = lambda: {pod["metadata"]["name"] for pod in self.get("pods")["items"]}  # noqa: E731

        self.kubectl("scale", f"tfjob/{name}", "--replicas=1")
        poll("a worker less", 60, lambda: pods() == {f"{name}-worker-0", f"{name}-ps-0", f"{name}-ps-1"})

        self.kubectl("patch", "tfjob", name, "--type=merge", "-p", '{"spec": {"runPolicy": {"suspend": true}}}')
        self.kubectl("wait", "--for=condition=Suspended", f"tfjob/{name}", "--timeout=60s")
        poll("no pod", 60, lambda: not pods())

        self.kubectl("patch", "tfjob", name, "--type=merge", "-p", '{"spec": {"runPolicy": {"suspend": false}}}')
        self.kubectl("wait", "--for=condition=Running", f"tfjob/{name}", "--timeout=60s")
        self.remove(name)

    def test_helms_own_test_passes(self):
        told = self.cluster.helm("test", "tfjob-operator", "--namespace", "tfjob-system", "--timeout", "2m")
        self.assertIn("Succeeded", told)
        self.assertNotIn("Failed", told)

    def test_kubectl_knows_tfjobs(self):
        self.assertIn("tfReplicaSpecs", self.kubectl("explain", "tfjob.spec"))
        self.assertIn("SHORTNAMES", self.kubectl("api-resources", "--api-group=kubeflow.org"))
        self.kubectl("get", "tfj", "-o", "wide")

    def test_the_operator_is_ready_within_a_second_of_its_start(self):
        self.kubectl("-n", "tfjob-system", "rollout", "restart", "deployment")
        self.kubectl("-n", "tfjob-system", "rollout", "status", "deployment", "--timeout=60s")
        pod = self.get("pods", "-n", "tfjob-system", "--sort-by=.metadata.creationTimestamp")["items"][-1]
        started = pod["status"]["containerStatuses"][0]["state"]["running"]["startedAt"]
        ready = next(c["lastTransitionTime"] for c in pod["status"]["conditions"] if c["type"] == "Ready")
        seconds = time.mktime(time.strptime(ready, "%Y-%m-%dT%H:%M:%SZ")) - time.mktime(
            time.strptime(started, "%Y-%m-%dT%H:%M:%SZ"))
        self.assertLessEqual(seconds, 2, "both times are whole seconds, and a probe a second tells")

    def test_z_uninstall_leaves_nothing_behind(self):
        self.cluster.helm("uninstall", "tfjob-operator", "--namespace", "tfjob-system", "--wait", "--timeout", "1m")
        self.kubectl("delete", "namespace", "tfjob-system", "--timeout=60s")
        self.assertEqual(self.inventory() - self.before, set())


if __name__ == "__main__":
    unittest.main()
