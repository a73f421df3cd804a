"""Simulates a kubelet: pods run immediately, and end when the test's script returns an exit code.
There is no scheduler. The API server removes a deleted pod without a node immediately, unless it
fails between the two writes that this takes."""
import collections
import threading

from . import api as kube
from .api import ApiError

INDEX = ("training.kubeflow.org/job-name", "training.kubeflow.org/replica-type", "training.kubeflow.org/replica-index")


def index_of(pod):
    """Returns (job, type, index) of a pod, or None if the pod belongs to no job."""
    labels = pod["metadata"].get("labels") or {}
    return tuple(labels[key] for key in INDEX) if all(key in labels for key in INDEX) else None


def live(pod):
    return (not pod["metadata"].get("deletionTimestamp")
            and pod.get("status", {}).get("phase") not in ("Succeeded", "Failed"))


class Kubelet:
    """Runs the pods of a namespace. `script(index, attempt)` returns the exit code of the
    attempt-th pod (counted from 0) of an index, or None if the pod keeps running. The script is
    called for all running pods whenever a pod changes, so the result may depend on
    self.running()."""

    def __init__(self, api, namespace, script):  # closes `api` at the end
        self._api, self._namespace, self._script = api, namespace, script
        self._pods = {}  # uid -> pod
        self._stopped = threading.Event()
        self.attempts = collections.defaultdict(list)  # (job, type, index) -> uids, oldest first
        self.violations = []
        self.lost_nodes = set()  # names of nodes whose deleted pods are never removed

    def __enter__(self):
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._stopped.set()
        self._api.close()
        self._thread.join()

    def running(self, index):
        """Returns whether a pod of this index is running."""
        return any(index_of(pod) == index and pod["status"].get("phase") == "Running" and live(pod)
                   for pod in list(self._pods.values()))

    def _run(self):
        path = kube.core(self._namespace, "pods")
        while not self._stopped.is_set():
            try:
                listing = self._api.get(path)
                for uid in set(self._pods) - {pod["metadata"]["uid"] for pod in listing["items"]}:
                    self._pods.pop(uid)
                for pod in listing["items"]:
                    if index_of(pod) and pod["metadata"].get("deletionTimestamp"):
                        self._take_away(pod)
                    self._see("MODIFIED", pod)
                for kind, pod in self._api.watch(path, listing["metadata"]["resourceVersion"], timeout=5):
                    if kind == "ERROR" or self._stopped.is_set():
                        break
                    if kind != "BOOKMARK":
                        self._see(kind, pod)
            except Exception:  # pylint: disable=broad-except
                self._stopped.wait(0.1)  # tests stop the API server

    def _see(self, kind, pod):
        index, uid = index_of(pod), pod["metadata"]["uid"]
        if index is None:
            return
        if kind == "DELETED":
            self._pods.pop(uid, None)
        else:
            self._pods[uid] = pod
            if uid not in self.attempts[index]:
                self.attempts[index].append(uid)
            if sum(index_of(other) == index and live(other) for other in self._pods.values()) > 1:
                self.violations.append(f"two live pods of {index}")
        for other in list(self._pods.values()):
            self._play(other)

    def _play(self, pod):
        index, uid = index_of(pod), pod["metadata"]["uid"]
        if not live(pod):
            return
        if pod["status"].get("phase") != "Running":
            self._write(pod, "Running", {"running": {}})
        code = self._script(index, self.attempts[index].index(uid))
        if code is not None:
            self._write(pod, "Failed" if code else "Succeeded", {"terminated": {"exitCode": code}})

    def _take_away(self, pod):
        """Removes a deleted pod from the API server, as kubelets do when the pod has ended. Only a
        deleted pod that a list still contains needs to be removed."""
        metadata = pod["metadata"]
        if pod["spec"].get("nodeName") in self.lost_nodes:
            return
        try:
            self._api.delete(kube.core(self._namespace, f"pods/{metadata['name']}"),
                             {"gracePeriodSeconds": 0, "preconditions": {"uid": metadata["uid"]}})
        except ApiError as error:
            if error.code not in (404, 409):
                raise

    def _write(self, pod, phase, state):
        name = pod["metadata"]["name"]
        status = {"phase": phase, "containerStatuses": [{
            "name": "tensorflow", "image": "fake", "imageID": "", "ready": phase == "Running", "restartCount": 0,
            "state": state}], "conditions": [{"type": "Ready", "status": "True" if phase == "Running" else "False"}]}
        # If the status of a pod is written during its deletion, the API server completes the
        # deletion, and identifies the pod only by name. Without the resource version, a late write
        # could therefore delete the pod's replacement.
        version = {key: pod["metadata"][key] for key in ("uid", "resourceVersion")}
        try:
            answer = self._api.patch(kube.core(self._namespace, f"pods/{name}/status"), {"metadata": version, "status": status})
            pod["metadata"], pod["status"] = answer["metadata"], answer["status"]
        except ApiError as error:
            if error.code not in (404, 409):
                raise
