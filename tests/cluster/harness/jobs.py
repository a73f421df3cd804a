"""Creates many TFJobs for fake nodes."""
import collections
import concurrent.futures

from . import api as kube
from .cluster import poll

NAMESPACE = "load"


def replicas(count, restart_policy="OnFailure", annotations=None):
    return {"replicas": count, "restartPolicy": restart_policy, "template": {
        "metadata": {"annotations": annotations or {}},
        "spec": {"tolerations": [{"key": "kwok.x-k8s.io/node", "operator": "Exists"}],
                 "containers": [{"name": "tensorflow", "image": "fake", "args": ["--config=/config/training.yaml"]}]}}}


def tfjob(name, workers=4, ps=2, run_policy=None, **more):
    """Returns a TFJob; `more` are arguments of replicas() for the workers."""
    specs = {"Worker": replicas(workers, **more)}
    if ps:
        specs["PS"] = replicas(ps)
    return {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": {"name": name},
            "spec": {"runPolicy": run_policy or {"cleanPodPolicy": "None"}, "tfReplicaSpecs": specs}}


def create_jobs(api, jobs, threads=4):
    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        list(pool.map(lambda job: api.create(kube.tfjobs(NAMESPACE), job), jobs))


def states(api):
    """Returns {state as shown by kubectl: number of jobs}."""
    return collections.Counter(api.column(kube.tfjobs(NAMESPACE), "State").values())


def wait_state(api, state, count, seconds):
    poll(f"{count} jobs {state}", seconds, lambda: states(api)[state] >= count, every=0.5)


def condition(job, kind):
    """Returns whether a job's condition is True."""
    return any(c["type"] == kind and c["status"] == "True" for c in job.get("status", {}).get("conditions") or [])
