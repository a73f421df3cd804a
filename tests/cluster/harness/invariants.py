"""What must hold of jobs, pods and services once nothing happens any more."""
import collections

from . import api as kube
from .jobs import condition
from .kubelet import index_of, live

JOB = "training.kubeflow.org/job-name"


def owner(item):
    return next((ref["uid"] for ref in item["metadata"].get("ownerReferences") or [] if ref.get("controller")), None)


def violations(api, namespace):
    """Everything that is wrong, as sentences; none while a job is about to change is a promise that nobody gives, so ask
    until it stays."""
    jobs = {job["metadata"]["uid"]: job for job in api.items(kube.tfjobs(namespace))}
    pods = [pod for pod in api.items(kube.core(namespace, "pods")) if index_of(pod)]
    found = []
    for item in pods + [s for s in api.items(kube.core(namespace, "services")) if JOB in (s["metadata"].get("labels") or {})]:
        if owner(item) not in jobs:
            found.append(f"orphan {item['metadata']['name']}")
    for index, count in collections.Counter(index_of(pod) for pod in pods if live(pod)).items():
        if count > 1:
            found.append(f"{count} live pods of {index}")
    for uid, job in jobs.items():
        found += disagreements(job, [pod for pod in pods if owner(pod) == uid])
    return found


def disagreements(job, pods):
    """What a job's status says otherwise than its pods."""
    name = job["metadata"]["name"]
    conditions = [kind for kind in ("Running", "Restarting", "Suspended", "Succeeded", "Failed") if condition(job, kind)]
    if len([kind for kind in conditions if kind in ("Succeeded", "Failed")]) > 1:
        yield f"{name} is {' and '.join(conditions)}"
    if "Succeeded" in conditions or "Failed" in conditions:
        return  # counts stay as they were, whatever pods do
    for kind, status in (job.get("status", {}).get("replicaStatuses") or {}).items():
        active = sum(live(pod) and pod["status"].get("phase") == "Running" for pod in pods if index_of(pod)[1] == kind.lower())
        if status.get("active", 0) != active:
            yield f"{name}: {kind} active {status.get('active', 0)}, running {active}"
