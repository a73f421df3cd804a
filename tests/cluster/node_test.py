"""Tests the operator on a real node, where pods run. Installs the operator as users do, with Helm
and kubectl, and runs deploy/examples. TFJOB_TEST_IMAGES may name a folder with images that
deploy/docker/build.sh has built."""
import base64
import datetime
import hashlib
import hmac
import json
import os
import pathlib
import re
import shutil
import subprocess
import tarfile
import tempfile
import time
import unittest

from harness.cluster import ROOT, Cluster, poll
from harness.process import TICK, total

CHART = ROOT / "charts/tfjob-operator"
EXAMPLES = ROOT / "deploy/examples"
DATA = pathlib.Path("/usr/share/datasets/fashion-mnist")
MODELS = pathlib.Path("/var/tmp/tfjob")  # the volumes for the models of the examples
DEEP = "TFJOB_DEEP" in os.environ  # set by deploy/test.sh --deep
NONROOT = 65532  # the ID of the user that the images run as
KINDS = ("crd,clusterrole,clusterrolebinding,namespace,prioritylevelconfiguration,flowschema,validatingwebhookconfiguration,"
         "role,rolebinding,serviceaccount,deployment,replicaset,pod,service,endpointslice,configmap,secret,lease,"
         "poddisruptionbudget,networkpolicy")


def manifest_of(example):
    """Returns the path of an example's manifest."""
    return next(EXAMPLES.rglob(f"{example}.yaml"))


def take_program(image, path, folder):
    """Copies a program from an image's archive to the folder, and returns its path."""
    with tarfile.open(image) as archive:
        layer = json.load(archive.extractfile("manifest.json"))[0]["Layers"][0]
        with tarfile.open(fileobj=archive.extractfile(layer), mode="r:gz") as files:
            files.extract(path, folder)
    return f"{folder}/{path}"


def brief_job(**run_policy):
    """Returns a job whose only worker exits at once."""
    image = re.search(r"image: (\S+)", (EXAMPLES / "local.yaml").read_text()).group(1)
    container = {"name": "tensorflow", "image": image, "command": ["/usr/bin/tfjob-trainer", "--version"],
                 "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}}
    context = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    return json.dumps({
        "apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": "brief"}, "spec": {
            "runPolicy": run_policy,
            "tfReplicaSpecs": {"Worker": {"replicas": 1, "template": {
                "spec": {"securityContext": context, "containers": [container]}}}}}})


def seconds_of(stamp):
    """Converts a timestamp in a log or an API object to seconds, as returned by time.time()."""
    return datetime.datetime.fromisoformat(stamp.replace("Z", "+00:00")).timestamp()


def start_of(program):
    """Returns the start time, according to the kernel, of the only process that runs this
    program."""
    seen = set()
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            seen.add(path := os.readlink(folder / "exe"))
            if path.endswith(program):  # in a chroot, the path may be relative to the host's root
                ticks = int((folder / "stat").read_text().rpartition(")")[2].split()[19])
                return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) + ticks / TICK
        except OSError:
            pass  # the process has exited, or is a kernel thread
    raise LookupError(f"{program} is none of {sorted(seen)}")


class NodeTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        images = os.environ.get("TFJOB_TEST_IMAGES")
        if not images:
            images = tempfile.mkdtemp()
            cls.addClassCleanup(shutil.rmtree, images)
            names = ["operator", "trainer", *(["fashion-mnist-cpp"] if DEEP else [])]
            subprocess.run([ROOT / "deploy/docker/build.sh", images, *names], check=True)
        cls.images = images
        cls.cluster = cls.enterClassContext(Cluster(node=True))
        cls.cluster.load_images(*map(str, pathlib.Path(images).glob("*.tar")))
        programs = tempfile.mkdtemp()
        cls.addClassCleanup(shutil.rmtree, programs)
        cls.tfjob_program = take_program(f"{images}/operator.tar", "usr/bin/tfjob", programs)
        # Pods that do not meet the Pod Security level "restricted" are rejected.
        cls.kubectl("label", "namespace", "default", "pod-security.kubernetes.io/enforce=restricted")
        cls.before = cls.inventory()
        cls.release("install", CHART, "tfjob-system")

    @classmethod
    def release(cls, verb, chart, namespace, *values):
        settings = [word for value in ("crds.keep=false", *values) for word in ("--set", value)]
        cls.cluster.helm(verb, "tfjob-operator", str(chart), "--namespace", namespace, "--create-namespace", *settings,
                         "--wait", "--timeout", "2m")

    @classmethod
    def uninstall(cls, namespace):
        cls.cluster.helm("uninstall", "tfjob-operator", "--namespace", namespace, "--ignore-not-found", "--wait",
                         "--timeout", "1m")
        cls.kubectl("delete", "namespace", namespace, "--ignore-not-found", "--timeout=60s")

    @classmethod
    def inventory(cls):
        """Returns the kind, namespace and name of every object, except for the objects that every
        namespace or node has."""
        listing = cls.cluster.kubectl("get", KINDS, "--all-namespaces", "--ignore-not-found",
                                      "-o", "jsonpath={range .items[*]}{.kind}/{.metadata.namespace}/{.metadata.name}\n{end}")
        return {line for line in listing.split() if not re.search("/kube-root-ca.crt$|/default$|^Lease/kube-node-lease/", line)}

    @classmethod
    def kubectl(cls, *arguments, text=None):
        return cls.cluster.kubectl(*arguments, text=text)

    def get(self, *arguments):
        return json.loads(self.kubectl("get", *arguments, "-o", "json"))

    def tfjob(self, *arguments):
        """Runs `tfjob` and returns its output."""
        return subprocess.run([self.tfjob_program, "--kubeconfig", self.cluster.kubeconfig, *arguments], check=True,
                              text=True, stdout=subprocess.PIPE, timeout=300).stdout

    def check_rights(self, namespace):
        """Checks that no request of the operator was rejected because of a missing permission."""
        path = f"/api/v1/namespaces/{namespace}/services/tfjob-operator-metrics:8080/proxy/metrics"
        page = poll("the metrics", 20, lambda: self.kubectl("get", "--raw", path))
        self.assertGreater(total(page, "rest_client_requests_total"), 0)
        log = self.kubectl("logs", "-n", namespace, "deployment/tfjob-operator")
        refused = [line for line in log.splitlines() if re.search("forbidden|PERMISSION_DENIED", line)]
        self.assertEqual((total(page, "rest_client_requests_total", code="403"), refused), (0, []))

    def tearDown(self):
        if self.get("deployments", "-n", "tfjob-system")["items"]:
            self.check_rights("tfjob-system")

    def states(self, name):
        """Starts `kubectl get tfjob NAME -w`. Returns a function that returns the states shown so
        far, in order and without consecutive repetitions."""
        out = tempfile.TemporaryFile("w+")
        watch = subprocess.Popen([self.cluster.programs / "kubectl", "--kubeconfig", self.cluster.kubeconfig, "get", "tfjob",
                                  name, "-w", "--no-headers"], stdout=out)
        self.addCleanup(out.close)
        self.addCleanup(watch.wait)
        self.addCleanup(watch.kill)

        def shown():
            out.seek(0)
            # The first line may be printed before the operator has set a state. The second word of
            # this line is then not a state.
            seen = re.findall(r"^\S+ +([A-Z]\w*) ", out.read(), re.MULTILINE)
            return [state for i, state in enumerate(seen) if i == 0 or seen[i - 1] != state]

        return shown

    def provide_volumes(self, example):
        """Creates the volumes for the claims of an example: an empty folder for the model, and the data. The kubelet
        does not apply the pod's fsGroup to hostPath volumes, so this function sets the folder's owner."""
        model = MODELS / example
        shutil.rmtree(model, ignore_errors=True)
        self.addCleanup(shutil.rmtree, model, ignore_errors=True)
        model.mkdir(parents=True)
        os.chown(model, NONROOT, NONROOT)
        for kind, path in (("model", model), ("data", DATA)):
            name = f"{example}-{kind}"
            self.kubectl("apply", "-f", "-", text=json.dumps({
                "apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": {
                    "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteMany"], "hostPath": {"path": str(path)},
                    "claimRef": {"namespace": "default", "name": name}}}))
            self.addCleanup(self.kubectl, "delete", "pv", name, "--timeout=60s")
        # Must run before the other cleanups, because the job still uses the volumes after a
        # failure.
        self.addCleanup(self.kubectl, "delete", "-f", str(manifest_of(example)), "--ignore-not-found", "--timeout=120s")

    def train(self, example, meanwhile, seconds=900):
        """Applies an example, calls meanwhile(), and waits until the job has succeeded. Returns the
        states that the job has had."""
        self.provide_volumes(example)
        self.kubectl("apply", "-f", str(manifest_of(example)))
        states = self.states(example)
        try:
            meanwhile()
            self.kubectl("wait", "--for=condition=Succeeded", f"tfjob/{example}", f"--timeout={seconds}s")
        except (AssertionError, subprocess.SubprocessError, TimeoutError):
            print(self.kubectl("describe", f"tfjob/{example}"), self.kubectl("get", "pods", "-o", "wide"))
            self.remove(example)
            raise
        poll("the watch shows it", 10, lambda: states()[-1] == "Succeeded")
        return states()

    def remove(self, example):
        """Deletes an example, and waits until its pods and services are gone."""
        self.kubectl("delete", "-f", str(manifest_of(example)), "--timeout=120s")
        poll("nothing of the job is left", 60, lambda: not self.get(
            "pods,services", "-l", f"training.kubeflow.org/job-name={example}")["items"])

    def check_example(self, example, tasks, meanwhile=lambda: None, model="*.index", accuracy=0):
        """Runs an example until it has succeeded. Its tasks must have logged something, files that match the pattern
        `model` must be in the folder for the model, and the last accuracy that the first task has logged must be at
        least `accuracy`."""
        def check():
            # When the job ends, the operator deletes the pods that still run, and their logs are gone.
            for task in tasks:
                poll(f"{task} logs something", 120, lambda pod=f"{example}-{task}": self.kubectl("logs", pod))
            meanwhile()

        states = self.train(example, check)
        self.assertEqual(states, sorted(states, key=["Created", "Running", "Succeeded"].index))
        self.assertIn("Running", states)
        self.assertTrue(list((MODELS / example).glob(model)), f"no {model} in the folder for the model")
        if accuracy:
            log = self.kubectl("logs", f"{example}-{tasks[0]}")  # this pod has succeeded, so it has not been deleted
            logged = re.findall(r"accuracy\W+([\d.]+)", log)
            self.assertGreaterEqual(float(logged[-1]) if logged else 0, accuracy, log)
        self.remove(example)

    def test_fashion_mnist(self):
        self.check_example("fashion-mnist", ["chief-0", "worker-0", "worker-1", "ps-0", "ps-1", "evaluator-0"])

    def test_fashion_mnist_sync(self):
        self.check_example("fashion-mnist-sync", ["chief-0", "worker-0", "worker-1", "ps-0", "ps-1", "evaluator-0"])

    @unittest.skipUnless(DEEP, "a million steps take minutes: deploy/test.sh --deep")
    def test_linear_regression(self):
        self.check_example("linear-regression", ["worker-0", "worker-1", "ps-0", "ps-1"])

    def test_local(self):
        self.check_example("local", ["worker-0"])

    @unittest.skipUnless(DEEP, "takes a minute: deploy/test.sh --deep")
    def test_a_convolutional_network(self):
        self.check_example("mnist-cnn", ["chief-0", "worker-0", "ps-0"], accuracy=0.88)

    @unittest.skipUnless(DEEP, "takes a minute: deploy/test.sh --deep")
    def test_multi_worker(self):
        self.check_example("multi-worker", ["chief-0", "worker-0", "worker-1"])

    @unittest.skipUnless(DEEP, "a second and a third strategy of one task: deploy/test.sh --deep")
    def test_several_devices(self):
        for example in ("mirrored", "central-storage"):
            self.check_example(example, ["worker-0"])

    @unittest.skipUnless(DEEP, "needs one more image: deploy/test.sh --deep")
    def test_a_program_in_cpp(self):
        self.check_example("fashion-mnist-cpp", ["chief-0", "worker-0", "worker-1"], model="fashion.safetensors")

    def test_mnist_replica_as_tfjob_tells_of_it(self):
        self.check_example("mnist-replica", ["worker-0", "worker-1", "ps-0"], self.check_what_tfjob_tells)

    def check_what_tfjob_tells(self):
        name = "mnist-replica"
        poll("all run", 60, lambda: re.search(rf"(?m)^{name} +Running +3/3 +0 +\S+$", self.tfjob("get", name)))
        # The cluster has no metrics server. `top` gets its numbers from the trainer or the
        # trainer's log.
        poll("the step", 60, lambda: re.search(rf"(?m)^{name} +Running +3/3 +\S+ +step \d+", self.tfjob("top", name)))
        description = self.tfjob("describe", name)
        for line in (rf"Name: +{name}", "State: +Running", "  Worker +2 +2 +0 +0 +0 +OnFailure .*",
                     rf"  {name}-ps-0 +Running +0 +<none> +\S+ +\S+ +<none>", "  Running +True +TFJobRunning .*",
                     rf"  \S+ +Normal +SuccessfulCreatePod +TFJob {name} +Created pods: .*"):
            self.assertRegex(description, f"(?m)^{line}$")
        log = self.tfjob("logs", name, "--replica", "worker/0")
        self.assertRegex(log, r"(?m)^\S+Z INFO +train ")
        followed = self.tfjob("logs", name, "-f")  # returns when the job ends
        for task in ("worker-0", "worker-1", "ps-0"):
            self.assertRegex(followed, rf"(?m)^{name}-{task} \| ")
        self.assertIn(log.splitlines()[0], followed)
        self.tfjob("wait", name, "--for=Succeeded", "--timeout=10s")

    def test_a_job_is_deleted_when_its_time_to_live_is_over(self):
        self.kubectl("apply", "-f", "-", text=brief_job(ttlSecondsAfterFinished=1))
        states = self.states("brief")
        self.kubectl("wait", "--for=delete", "tfjob/brief", "--timeout=60s")
        poll("the watch shows its end", 10, lambda: states()[-1] == "Succeeded")
        # The garbage collector may need half a minute after the creation of the CRD to discover
        # TFJobs, and then pauses for another half minute.
        poll("no pod", 120, lambda: not self.get("pods", "-l", "training.kubeflow.org/job-name=brief")["items"])

    def test_a_running_job_is_scaled_suspended_and_resumed(self):
        name = "linear-regression"
        self.provide_volumes(name)
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

    @unittest.skipUnless(DEEP, "takes minutes: deploy/test.sh --deep")
    def test_an_elastic_job_is_scaled_while_it_trains(self):
        """Scales the example's workers 2 → 4 → 1. No step is lost."""
        name = "elastic"
        self.provide_volumes(name)
        manifest = (EXAMPLES / f"{name}.yaml").read_text()
        text = manifest.replace("epochs: 8", "epochs: 150").replace("log_step_count_steps: 500", "log_step_count_steps: 50")
        self.assertNotEqual(text, manifest)
        self.kubectl("apply", "-f", "-", text=text)
        log = lambda: self.kubectl("logs", f"{name}-chief-0")  # noqa: E731
        steps = lambda: [int(step) for step in re.findall(r" step step=(\d+)", log())]  # noqa: E731
        ranks = lambda: re.findall(r"ranks=(\d+)", log())[-1:]  # noqa: E731

        poll("three tasks train", 120, lambda: ranks() == ["3"] and steps())
        for replicas in (4, 1):
            self.kubectl("scale", f"tfjob/{name}", f"--replicas={replicas}")
            poll(f"{replicas + 1} tasks train", 120, lambda n=replicas + 1: ranks() == [str(n)])
            before = len(steps())
            poll("they take steps", 60, lambda n=before: len(steps()) > n)
        self.kubectl("wait", "--for=condition=Succeeded", f"tfjob/{name}", "--timeout=600s")
        self.assertEqual(steps(), sorted(set(steps())))
        self.assertNotIn("rolled back", log())
        self.remove(name)

    def test_each_image_comes_with_a_list_of_its_contents(self):
        for name, program in (("operator", "tfjob-operator"), ("trainer", "tfjob-trainer")):
            listing = json.loads((pathlib.Path(self.images) / f"{name}.spdx.json").read_text())
            listed = {file["fileName"]: file["checksums"][1]["checksumValue"] for file in listing["files"]}
            with tarfile.open(f"{self.images}/{name}.tar") as archive:
                layer = json.load(archive.extractfile("manifest.json"))[0]["Layers"][0]
                with tarfile.open(fileobj=archive.extractfile(layer), mode="r:gz") as files:
                    held = {f"./{file.name}": hashlib.sha256(files.extractfile(file).read()).hexdigest()
                            for file in files if file.isfile()}
            self.assertEqual(listed, held)
            self.assertIn(f"./usr/bin/{program}", held)
            origins = {entry["name"] for entry in listing["packages"]}
            self.assertLessEqual({"libc6", "libstdc++6", "nlohmann-json3-dev"}, origins)
            # Every library must come from a package.
            owned = {relation["relatedSpdxElement"] for relation in listing["relationships"]
                     if relation["relationshipType"] == "CONTAINS" and relation["spdxElementId"] != "SPDXRef-Image"}
            for file in listing["files"]:
                if ".so" in file["fileName"]:
                    self.assertIn(file["SPDXID"], owned, file["fileName"])

    def test_helms_own_test_passes(self):
        told = self.cluster.helm("test", "tfjob-operator", "--namespace", "tfjob-system", "--timeout", "2m")
        self.assertIn("Succeeded", told)
        self.assertNotIn("Failed", told)

    def test_pods_get_a_key_which_an_upgrade_keeps(self):
        keys = lambda: self.get("secret", "tfjob-operator-job-keys", "-n", "tfjob-system")["data"]  # noqa: E731
        made = keys()
        self.assertEqual({name: len(base64.b64decode(key)) for name, key in made.items()}, {"1": 32})
        self.release("upgrade", CHART, "tfjob-system")
        self.assertEqual(keys(), made)
        self.kubectl("apply", "-f", "-", text=brief_job())
        self.kubectl("wait", "--for=condition=Succeeded", "tfjob/brief", "--timeout=60s")
        pod = self.get("pod", "brief-worker-0")
        uid = self.get("tfjob", "brief")["metadata"]["uid"]
        self.assertRegex(pod["metadata"]["annotations"]["tfjob.dev/key-id"], r"^1\.[0-9a-f]{8}$")
        key = hmac.digest(base64.b64decode(made["1"]), b"tfjob.dev/job-key/v1\0" + uid.encode(), "sha256")
        environment = [each for each in pod["spec"]["containers"][0]["env"] if each["name"] in ("TFJOB_KEY", "TFJOB_UID")]
        self.assertEqual(environment, [{"name": "TFJOB_KEY", "value": key.hex()}, {"name": "TFJOB_UID", "value": uid}])
        self.kubectl("delete", "tfjob/brief", "--timeout=30s")
        log = self.kubectl("logs", "-n", "tfjob-system", "deployment/tfjob-operator")
        self.assertNotIn(key.hex(), log)

    def test_kubectl_knows_tfjobs(self):
        self.assertIn("tfReplicaSpecs", self.kubectl("explain", "tfjob.spec"))
        self.assertIn("SHORTNAMES", self.kubectl("api-resources", "--api-group=kubeflow.org"))
        self.kubectl("get", "tfj", "-o", "wide")

    def test_the_operator_is_ready_within_a_second_of_its_start(self):
        """Measures the time from the start of the container's process, according to the kernel, to
        the end of the first lists, according to the log. /readyz waits for these lists."""
        pods = lambda: self.get("pods", "-n", "tfjob-system")["items"]  # noqa: E731
        for count in (0, 1):
            self.kubectl("-n", "tfjob-system", "scale", "deployment/tfjob-operator", f"--replicas={count}")
            poll(f"{count} operators", 30, lambda c=count: len(pods()) == c)
        self.kubectl("-n", "tfjob-system", "rollout", "status", "deployment/tfjob-operator", "--timeout=60s")
        [pod] = pods()
        log = self.kubectl("-n", "tfjob-system", "logs", pod["metadata"]["name"])
        ready = next(line for line in map(json.loads, log.splitlines()) if line["message"] == "ready")
        seconds = seconds_of(ready["time"]) - start_of("/usr/bin/tfjob-operator")
        print(f"the operator was ready {seconds:.2f} s after its start", flush=True)
        self.assertLessEqual(seconds, 1)
        kubelets = [pod["status"]["containerStatuses"][0]["state"]["running"]["startedAt"], next(
            c["lastTransitionTime"] for c in pod["status"]["conditions"] if c["type"] == "Ready")]
        self.assertLessEqual(seconds_of(kubelets[1]) - seconds_of(kubelets[0]), 2,
                             "both times are whole seconds, and a probe a second tells")

    def test_z_uninstall_leaves_nothing_behind(self):
        self.uninstall("tfjob-system")
        self.assertEqual(self.inventory() - self.before, set())

    def check_operator(self, namespace, jobs_in="default"):
        """Checks that a freshly installed operator works."""
        self.kubectl("-n", namespace, "rollout", "status", "deployment/tfjob-operator", "--timeout=60s")
        self.kubectl("-n", jobs_in, "apply", "-f", "-", text=brief_job(suspend=True))
        self.kubectl("-n", jobs_in, "wait", "--for=condition=Suspended", "tfjob/brief", "--timeout=30s")
        self.kubectl("-n", jobs_in, "delete", "tfjob/brief", "--timeout=30s")
        self.check_rights(namespace)

    def test_zz_one_file_and_kustomizations_install_it_too(self):
        self.uninstall("tfjob-system")
        for way in (["-f", str(ROOT / "deploy/tfjob-operator.yaml")],
                    ["--server-side", "-k", str(ROOT / "deploy/kustomize/overlays/standalone")]):
            self.kubectl("apply", *way)
            self.check_operator("tfjob-system")
            self.kubectl("delete", *way[-2:], "--timeout=60s")
            self.assertEqual(self.inventory() - self.before, set())
        self.kubectl("create", "namespace", "kubeflow")
        self.addCleanup(self.kubectl, "delete", "namespace", "kubeflow")
        self.kubectl("apply", "--server-side", "--dry-run=server", "-k", str(ROOT / "deploy/kustomize/overlays/kubeflow"))

    def test_zz_a_release_of_one_namespace_is_upgraded_with_the_definition(self):
        self.uninstall("tfjob-system")
        columns = lambda: self.kubectl("get", "crd", "tfjobs.kubeflow.org", "-o",  # noqa: E731
                                       "jsonpath={.spec.versions[0].additionalPrinterColumns[*].name}").split()
        with tempfile.TemporaryDirectory() as folder:
            older = pathlib.Path(shutil.copytree(CHART, f"{folder}/chart"))
            definition = older / "files/kubeflow.org_tfjobs.yaml"
            column = r" +- description: .*\n +jsonPath: .status.restarts\n +name: .*\n +type: .*\n"
            definition.write_text(re.sub(column, "", definition.read_text()))
            self.release("install", older, "team-a", "namespaces={team-a}")
        self.assertNotIn("Restarts", columns())
        self.check_operator("team-a", "team-a")
        self.kubectl("apply", "-f", "-", text=brief_job(suspend=True))
        self.release("upgrade", CHART, "team-a", "namespaces={team-a}", "manager.config.controller.threads=2")
        self.assertIn("Restarts", columns())
        self.check_operator("team-a", "team-a")
        self.assertNotIn("conditions", self.get("tfjob", "brief").get("status", {}), "a job in a foreign namespace")
        self.uninstall("team-a")
        self.assertEqual(self.inventory() - self.before, set())


if __name__ == "__main__":
    unittest.main()
