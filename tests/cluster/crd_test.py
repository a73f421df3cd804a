#!/usr/bin/env python3
"""Tests the TFJob CRD on an API server: which manifests it accepts and rejects, and the output of
kubectl. TFJOB_TEST_KUBECONFIG may name a kubeconfig for the server; if it is not set, the test
starts a control plane. KUBECTL may name the kubectl program; the default is kubectl in PATH."""
import copy
import json
import os
import pathlib
import re
import subprocess
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
CRD = ROOT / "crds" / "kubeflow.org_tfjobs.yaml"
DOOR = ROOT / "tests" / "cluster" / "crd"
REFUSED = json.loads((DOOR / "refused.json").read_text())
NAMESPACES = [f"tfjob-crd-test-{os.getpid()}", "kubeflow"]  # some manifests use the second


def kubectl(*arguments, given=None):
    """Runs kubectl. Returns (exit status, output, errors)."""
    command = [os.environ.get("KUBECTL", "kubectl"), "--kubeconfig", os.environ["TFJOB_TEST_KUBECONFIG"]]
    if isinstance(given, dict):
        given = json.dumps(given)
    done = subprocess.run(command + list(arguments), input=given, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout, done.stderr


def must(*arguments, given=None):
    status, output, errors = kubectl(*arguments, given=given)
    if status != 0:
        raise AssertionError(f"kubectl {' '.join(arguments)}: {errors}")
    return output


def merged(target, patch):
    """Returns `target` after a JSON merge patch (RFC 7386)."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


def job(patch=None, name="mnist"):
    return merged(merged(REFUSED["base"], {"metadata": {"name": name}}), patch or {})


def in_test(*arguments):
    return ("-n", NAMESPACES[0]) + arguments


def stored(name):
    return json.loads(must(*in_test("get", "tfjob", name, "-o", "json")))


def eventually(check, seconds=20):
    deadline = time.monotonic() + seconds
    while True:
        try:
            return check()
        except AssertionError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.2)


def install(definition=None):
    """Installs a CRD, by default that of the project. Returns when the server serves the CRD."""
    if definition is None:
        must("apply", "--server-side", "--force-conflicts", "-f", str(CRD))
    else:
        must("replace", "-f", "-", given=definition)

    def established():
        crd = json.loads(must("get", "crd", "tfjobs.kubeflow.org", "-o", "json"))
        conditions = {c["type"]: c["status"] for c in crd.get("status", {}).get("conditions") or []}
        assert conditions.get("Established") == "True", conditions
        must("get", "tfjobs", "-A")

    eventually(established)


def without_rules(schema):
    """Returns a copy of the schema without validation rules, enums, bounds and required fields."""
    if isinstance(schema, list):
        return [without_rules(member) for member in schema]
    if not isinstance(schema, dict):
        return schema
    dropped = {"x-kubernetes-validations", "enum", "minimum", "maximum", "maxItems", "maxProperties", "maxLength",
               "required"}
    return {key: without_rules(value) for key, value in schema.items() if key not in dropped}


def setUpModule():
    if "TFJOB_TEST_KUBECONFIG" not in os.environ:
        from harness.cluster import Cluster  # pylint: disable=import-outside-toplevel

        cluster = unittest.enterModuleContext(Cluster())
        os.environ["TFJOB_TEST_KUBECONFIG"] = str(cluster.kubeconfig)
        os.environ["KUBECTL"] = str(cluster.programs / "kubectl")
    install()
    for namespace in NAMESPACES:
        kubectl("create", "namespace", namespace)


def tearDownModule():
    for namespace in NAMESPACES:
        kubectl("delete", "tfjobs", "--all", "-n", namespace)
    kubectl("delete", "namespace", NAMESPACES[0], "--wait=false")


class Definition(unittest.TestCase):
    def test_has_no_complaint_of_the_server(self):
        conditions = json.loads(must("get", "crd", "tfjobs.kubeflow.org", "-o", "json"))["status"]["conditions"]
        self.assertEqual([c["message"] for c in conditions if c["type"] == "NonStructuralSchema"], [])

    def test_client_side_apply_has_room_for_it(self):
        must("apply", "-f", str(CRD))
        must("apply", "--server-side", "--force-conflicts", "-f", str(CRD))

    def test_explains_itself(self):
        # The server publishes the OpenAPI document of a new CRD only some time after it has started
        # to serve the objects.
        deadline = time.monotonic() + 60
        while kubectl("explain", "tfjob.spec")[0] != 0 and time.monotonic() < deadline:
            time.sleep(0.2)
        self.assertIn("Worker (trains)", must("explain", "tfjob.spec"))
        self.assertIn("Replica", must("explain", "tfjob.spec.runPolicy.restartScope"))
        self.assertIn("TF_CONFIG", must("explain", "tfj.spec.tfReplicaSpecs.template"))


class Door(unittest.TestCase):
    def test_accepts_what_the_reference_accepts(self):
        files = sorted((DOOR / "accepted").glob("*.yaml")) + sorted((ROOT / "deploy" / "examples").glob("*.yaml"))
        self.assertGreater(len(files), 12)
        for manifest in files:
            for how in (["--server-side", "--force-conflicts"], []):
                with self.subTest(manifest=manifest.name, how=how):
                    status, _, errors = kubectl("apply", *how, "-f", str(manifest))
                    self.assertEqual(status, 0, errors)
            kubectl("delete", "-f", str(manifest), "--wait=false")

    def test_keeps_what_it_does_not_know_of_pods(self):
        must(*in_test("apply", "-f", str(DOOR / "accepted" / "future-pod-fields.yaml")))
        pod = stored("future")["spec"]["tfReplicaSpecs"]["Worker"]["template"]["spec"]
        self.assertEqual(pod["schedulingGroup"], {"podGroupName": "later"})
        self.assertEqual(pod["containers"][0]["futureField"], {"deep": [1, {"more": True}]})

    def test_refuses_with_a_text_that_helps(self):
        for case in REFUSED["cases"]:
            with self.subTest(case["what"]):
                refused = merged(REFUSED["base"], case["patch"])
                status, output, errors = kubectl(*in_test("create", "-f", "-"), given=refused)
                self.assertNotEqual(status, 0, output)
                for part in case["says"]:
                    self.assertIn(part, errors)

    def test_a_misspelled_field_is_refused_by_kubectl(self):
        status, _, errors = kubectl(*in_test("apply", "-f", "-"), given=job({"spec": {"tfReplicaSpec": {}}}))
        self.assertNotEqual(status, 0)
        self.assertIn('unknown field "spec.tfReplicaSpec"', errors)

    def test_generated_names_are_judged_by_what_they_become(self):
        generated = job()
        generated["metadata"] = {"generateName": "mnist-"}
        must(*in_test("create", "-f", "-"), given=generated)
        generated["metadata"] = {"generateName": "1-"}
        status, _, errors = kubectl(*in_test("create", "-f", "-"), given=generated)
        self.assertNotEqual(status, 0)
        self.assertIn("metadata.name: expected", errors)


class Update(unittest.TestCase):
    def apply(self, patch, name):
        return kubectl(*in_test("patch", "tfjob", name, "--type=merge", "-p", json.dumps(patch)))

    def test_the_manager_is_immutable(self):
        ours, theirs = "kubeflow.org/training-operator", "kueue.x-k8s.io/multikueue"
        must(*in_test("apply", "-f", "-"), given=job({"spec": {"runPolicy": {"managedBy": ours}}}, "managed"))
        must(*in_test("apply", "-f", "-"), given=job(name="unmanaged"))
        for name, value in (("managed", theirs), ("managed", None), ("unmanaged", ours)):
            status, _, errors = self.apply({"spec": {"runPolicy": {"managedBy": value}}}, name)
            self.assertNotEqual(status, 0, (name, value))
            self.assertIn("spec.runPolicy.managedBy is immutable", errors)
        self.assertEqual(self.apply({"spec": {"runPolicy": {"suspend": True}}}, "managed")[0], 0)

    def test_the_queue_is_immutable(self):
        queue = {"spec": {"runPolicy": {"schedulingPolicy": {"queue": "a"}}}}
        must(*in_test("apply", "-f", "-"), given=job(queue, "queued"))
        status, _, errors = self.apply({"spec": {"runPolicy": {"schedulingPolicy": {"queue": "b"}}}}, "queued")
        self.assertNotEqual(status, 0)
        self.assertIn("spec.runPolicy.schedulingPolicy.queue is immutable", errors)

    def test_the_spec_cannot_be_removed(self):
        must(*in_test("apply", "-f", "-"), given=job(name="whole"))
        status, _, errors = self.apply({"spec": None}, "whole")
        self.assertNotEqual(status, 0)
        self.assertIn("spec: Required value: expected an object, but it is missing", errors)

    def test_templates_can_change_while_suspended(self):
        must(*in_test("apply", "-f", "-"), given=job({"spec": {"runPolicy": {"suspend": True}}}, "kueue"))
        pod = {"nodeSelector": {"a": "b"}, "schedulingGates": [{"name": "g"}]}
        workers = {"Worker": {"template": {"metadata": {"labels": {"x": "y"}}, "spec": pod}}}
        status, _, errors = self.apply(
            {"spec": {"runPolicy": {"suspend": False}, "tfReplicaSpecs": workers}}, "kueue")
        self.assertEqual(status, 0, errors)

    def test_more_replicas_may_not_make_the_names_too_long(self):
        name = "a-name-of-fifty-four-characters-which-is-the-longest-1"
        must(*in_test("apply", "-f", "-"), given=job(name=name))
        status, _, errors = self.apply({"spec": {"tfReplicaSpecs": {"Worker": {"replicas": 11}}}}, name)
        self.assertNotEqual(status, 0)
        self.assertIn("shorten the name to 53 characters or fewer", errors)
        self.assertEqual(self.apply({"spec": {"tfReplicaSpecs": {"Worker": {"replicas": 10}}}}, name)[0], 0)

    def test_what_an_older_definition_let_through_can_still_be_written(self):
        definition = json.loads(must("get", "crd", "tfjobs.kubeflow.org", "-o", "json"))
        older = copy.deepcopy(definition)
        older["metadata"] = {key: definition["metadata"][key] for key in ("name", "resourceVersion")}
        older["spec"]["versions"][0]["schema"] = without_rules(definition["spec"]["versions"][0]["schema"])
        install(older)
        negative = {"spec": {"runPolicy": {"backoffLimit": -1}}}

        def older_is_served():
            must(*in_test("apply", "-f", "-"), given=job(negative, "probe"))

        eventually(older_is_served)
        let_through = []
        for number, case in enumerate(case for case in REFUSED["cases"] if not case.get("any_definition")):
            bad = merged(REFUSED["base"], case["patch"])
            if "name" not in case["patch"].get("metadata", {}):
                bad["metadata"]["name"] = f"older-{number}"
            eventually(lambda bad=bad: must(*in_test("create", "-f", "-"), given=bad))
            let_through.append(bad["metadata"]["name"])
        install()

        def newer_is_served():
            self.assertNotEqual(kubectl(*in_test("apply", "-f", "-"), given=job(negative, "another-probe"))[0], 0)

        eventually(newer_is_served)
        failed = {"conditions": [{"type": "Failed", "status": "True", "reason": "TFJobFailedValidation"}]}
        for name in let_through:
            with self.subTest(name):
                must(*in_test("patch", "tfjob", name, "--subresource=status", "--type=merge", "-p",
                              json.dumps({"status": failed})))
                must(*in_test("label", "tfjob", name, "seen=yes"))
        status, _, errors = self.apply({"spec": {"runPolicy": {"backoffLimit": -2}}}, "probe")
        self.assertNotEqual(status, 0)
        self.assertIn("spec.runPolicy.backoffLimit", errors)


class Shown(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        selector = "training.kubeflow.org/job-name=shown"
        must(*in_test("apply", "-f", "-"), given=job(name="shown"))
        must(*in_test("patch", "tfjob", "shown", "--subresource=status", "--type=merge", "-p", json.dumps({"status": {
            "conditions": [{"type": "Created", "status": "True"},
                           {"type": "Running", "status": "True", "message": "It runs."}],
            "ready": "1/2", "startTime": "2026-01-01T00:00:00Z",
            "replicaStatuses": {"Worker": {"active": 1, "selector": selector}}}})))

    def test_columns(self):
        header, row = must(*in_test("get", "tfj", "shown")).splitlines()
        self.assertEqual(header.split(), ["NAME", "STATE", "READY", "RESTARTS", "AGE"])
        self.assertEqual(row.split()[:4], ["shown", "Running", "1/2", "0"])

    def test_wide_columns(self):
        header, row = must(*in_test("get", "tfj", "shown", "-o", "wide")).splitlines()
        self.assertEqual(header.split()[5:], ["STARTED", "ENDED", "MESSAGE"])
        self.assertIn("It runs.", row)

    def test_waits_for_conditions(self):
        must(*in_test("wait", "tfjob/shown", "--for=condition=Running", "--timeout=5s"))

    def test_scale(self):
        must(*in_test("scale", "tfjob/shown", "--replicas=5"))
        self.assertEqual(stored("shown")["spec"]["tfReplicaSpecs"]["Worker"]["replicas"], 5)
        path = f"/apis/kubeflow.org/v1/namespaces/{NAMESPACES[0]}/tfjobs/shown/scale"
        scale = json.loads(must("get", "--raw", path))
        self.assertEqual(scale["status"], {"replicas": 1, "selector": "training.kubeflow.org/job-name=shown"})
        status, _, errors = kubectl(*in_test("scale", "tfjob/shown", "--replicas=100001"))
        self.assertNotEqual(status, 0)
        self.assertRegex(errors, re.compile("replicas"))

    def test_defaults_are_not_stored_but_suspend(self):
        must(*in_test("apply", "-f", "-"), given=job({"spec": {"runPolicy": {"backoffLimit": 1}}}, "defaults"))
        self.assertEqual(stored("defaults")["spec"]["runPolicy"], {"backoffLimit": 1, "suspend": False})
        plain = {"spec": {"tfReplicaSpecs": {"Worker": {"replicas": None}}}}
        must(*in_test("apply", "-f", "-"), given=job(plain, "plain"))
        self.assertEqual(list(stored("plain")["spec"]), ["tfReplicaSpecs"])
        self.assertEqual(list(stored("plain")["spec"]["tfReplicaSpecs"]["Worker"]), ["template"])


if __name__ == "__main__":
    unittest.main()
