"""Checks the invariants of jobs, pods and services that must hold when nothing changes any more."""
import collections

from . import api as kube
from .jobs import condition
from .kubelet import index_of, live

JOB = "training.kubeflow.org/job-name"
EXCLUSIVE = [{"Succeeded", "Failed"}, {"Running", "Restarting"}, {"Running", "Suspended"}, {"Running", "Succeeded"},
             {"Running", "Failed"}]


def owner(item):
    return next((ref["uid"] for ref in item["metadata"].get("ownerReferences") or [] if ref.get("controller")), None)


def violations(api, namespace):
    """Returns one sentence per violated invariant. The result is reliable only if no job is about
    to change, so call this function until the result stays the same."""
    jobs = {job["metadata"]["uid"]: job for job in api.items(kube.tfjobs(namespace))}
    pods = [pod for pod in api.items(kube.core(namespace, "pods")) if index_of(pod)]
    services = [s for s in api.items(kube.core(namespace, "services")) if JOB in (s["metadata"].get("labels") or {})]
    found = []
    for item in pods + services:
        if owner(item) not in jobs:
            found.append(f"orphan {item['metadata']['name']}")
    for index, count in collections.Counter(index_of(pod) for pod in pods if live(pod)).items():
        if count > 1:
            found.append(f"{count} live pods of {index}")
    for uid, job in jobs.items():
        if "managedBy" not in job["spec"].get("runPolicy", {}):
            found += disagreements(job, [pod for pod in pods if owner(pod) == uid], [s for s in services if owner(s) == uid])
    return found


def disagreements(job, pods, services):
    """Yields the differences between a job's status and its pods and services."""
    name, status = job["metadata"]["name"], job.get("status", {})
    kinds = [kind for kind in ("Running", "Restarting", "Suspended", "Succeeded", "Failed") if condition(job, kind)]
    for pair in EXCLUSIVE:
        if pair <= set(kinds):
            yield f"{name} is {' and '.join(sorted(pair))}"
    replicas = status.get("replicaStatuses") or {}
    restarts = sum(replica.get("restarts", 0) for replica in replicas.values())
    if status.get("restarts", 0) != restarts:
        yield f"{name}: restarts {status.get('restarts', 0)}, of its types {restarts}"
    if "Succeeded" in kinds or "Failed" in kinds:
        yield from remains(job, pods, services)  # the other counts never change again
        return
    for kind in job["spec"]["tfReplicaSpecs"]:
        counts = collections.Counter(pod.get("status", {}).get("phase") for pod in pods
                                     if index_of(pod)[1] == kind.lower() and not pod["metadata"].get("deletionTimestamp"))
        for field, phase in (("active", "Running"), ("succeeded", "Succeeded"), ("failed", "Failed")):
            if replicas.get(kind, {}).get(field, 0) != counts[phase]:
                yield f"{name}: {kind} {field} {replicas.get(kind, {}).get(field, 0)}, {phase} {counts[phase]}"
    active = sum(replica.get("active", 0) for replica in replicas.values())
    size = sum(replica.get("replicas", 1) for replica in job["spec"]["tfReplicaSpecs"].values())
    if status.get("ready") != f"{active}/{size}":
        yield f"{name}: ready {status.get('ready')}, is {active}/{size}"
    if job["spec"].get("runPolicy", {}).get("suspend", False):
        if "Suspended" not in kinds or pods or services:
            yield f"{name} is to be suspended, is {kinds} with {len(pods)} pods and {len(services)} services"
    elif "Suspended" in kinds or len(services) != size:
        yield f"{name} is {kinds} with {len(services)} services, not {size}"


def remains(job, pods, services):
    """Yields a sentence for each object that should not remain after the end of a job."""
    name = job["metadata"]["name"]
    for kind, replica in (job["status"].get("replicaStatuses") or {}).items():
        if replica.get("active", 0):
            yield f"{name} has ended, {kind} active {replica['active']}"
    if services:
        yield f"{name} has ended and has services"
    if job["spec"].get("runPolicy", {}).get("cleanPodPolicy") == "Running":
        for pod in pods:
            if pod.get("status", {}).get("phase") == "Running":
                yield f"{name} has ended, {pod['metadata']['name']} runs"
