#!/usr/bin/env python3
"""cluster-floor: creates the TFJobs, pods and services of cluster-load without an operator, and
waits until all pods are Running. Measures the CPU time that the other components need for that:
no operator can cause less. It has no status of a TFJob, no events and no watches on them."""
import concurrent.futures
import json
import time

from cluster_case import COMPONENTS, NAMESPACE, arguments, run_jobs
from harness import api as kube
from harness.cluster import Cluster, poll
from harness.jobs import tfjob
from harness.process import Operator, build_operator, cpu_seconds
from report import print_report

KINDS = ("services", "pods")
# Set by the API server.
SERVER_FIELDS = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields")
SERVER_SPEC = ("clusterIP", "clusterIPs", "nodeName")
CALLERS = 16


def rendered(cluster, program, options):
    """Returns {kind: objects} of the job "job-0", as the operator creates them. Deletes the job."""
    with Operator(program, cluster.kubeconfig) as operator:
        operator.wait_ready()
        only = type(options)(**{**vars(options), "jobs": 1})
        run_jobs(cluster.api(), operator, only)
    api = cluster.api()
    objects = {kind: api.items(kube.core(NAMESPACE, kind)) for kind in KINDS}
    api.delete(kube.tfjobs(NAMESPACE) + "/job-0", {"propagationPolicy": "Background"})
    for kind in KINDS:
        poll(f"no {kind}", 120, lambda k=kind: api.count(kube.core(NAMESPACE, k)) == 0, every=0.5)
    for found in objects.values():
        for item in found:
            item.pop("status", None)
            for field in SERVER_FIELDS:
                item["metadata"].pop(field, None)
            for field in SERVER_SPEC:
                item["spec"].pop(field, None)
    return objects


def for_job(item, name, uid):
    """Returns the object of job-0 as one of another job."""
    copy = json.loads(json.dumps(item).replace("job-0", name))
    copy["metadata"]["ownerReferences"][0]["uid"] = uid
    return copy


def create_all(api, templates, options):
    def create(i):
        name = f"job-{i}"
        uid = api.create(kube.tfjobs(NAMESPACE), tfjob(name, options.workers, options.ps))["metadata"]["uid"]
        for kind in KINDS:
            for item in templates[kind]:
                api.create(kube.core(NAMESPACE, kind), for_job(item, name, uid))

    with concurrent.futures.ThreadPoolExecutor(CALLERS) as pool:
        list(pool.map(create, range(options.jobs)))


def wait_running(api, pods):
    """Waits until this number of pods is Running. Asks rarely, because that is a load, too."""
    def running():
        states = api.column(kube.core(NAMESPACE, "pods"), "Status")
        return sum(state == "Running" for state in states.values()) >= pods

    poll(f"{pods} pods Running", 1800, running, every=10)


def main():
    options = arguments()
    program = options.operator or build_operator()
    with Cluster(fake_nodes=options.nodes, keep=options.keep) as cluster:
        cluster.install_crd()
        cluster.create_namespace(NAMESPACE)
        templates = rendered(cluster, program, options)
        pids = {name: cluster.component(name).pid for name in COMPONENTS}
        before = {name: cpu_seconds(pid) for name, pid in pids.items()}
        started = time.monotonic()
        create_all(cluster.api(), templates, options)
        created_s = time.monotonic() - started
        pods = options.jobs * (options.workers + options.ps)
        wait_running(cluster.api(), pods)
        cpu = {name: cpu_seconds(pid) - before[name] for name, pid in pids.items()}
        figures = {f"{name.removeprefix('kube-').replace('-', '_')}_cpu_s": value for name, value in cpu.items()}
        print_report("cluster-floor", time.monotonic() - started, 0.0, 0.0, jobs=options.jobs, pods=pods,
                     created_s=created_s, objects_per_s=2 * pods / created_s, **figures)


if __name__ == "__main__":
    main()
