#!/usr/bin/env python3
"""cluster-load: creates TFJobs as fast as the API server accepts them, and measures how long it
takes until all are Running. --jobs 1 --workers 1000 --ps 4 creates one large job. `first_status_s`
is the time until a job has its first condition. Fails if an event that is not routine was lost."""
import concurrent.futures
import sys
import time

from cluster_case import NAMESPACE, Usage, arguments, environment, run_jobs
from harness import api as kube
from harness.cluster import poll
from report import print_report


def created(api, options, started):
    """Returns the seconds from `started` until all pods and services exist."""
    wanted = options.jobs * (options.workers + options.ps)
    for resource in ("services", "pods"):
        poll(f"{wanted} {resource}", 1800, lambda r=resource: api.count(f"/api/v1/{r}") >= wanted, every=0.5)
    return time.monotonic() - started


def first_status(api, started):
    """Returns the seconds from `started` until the first job's status has a condition."""
    path = kube.tfjobs(NAMESPACE) + "/job-0"
    poll("a status", 600, lambda: (api.find(path) or {}).get("status", {}).get("conditions"), every=0.02)
    return time.monotonic() - started


def event_fates(operator):
    """Returns the numbers of events that were sent, are waiting, and were lost, according to the
    operator's metrics."""
    count = lambda result: int(operator.metric("tfjob_events_total", result=result))  # noqa: E731
    return {"events_sent": count("sent"), "events_waiting": int(operator.metric("tfjob_events_waiting")),
            "events_dropped": count("dropped"), "events_given_up": count("refused") + count("expired"),
            "events_dropped_routine": count("dropped_routine")}


def main():
    options = arguments()
    with environment(options) as (cluster, api, operator):
        usage = Usage(cluster, operator)
        started = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor() as pool:
            creation = pool.submit(created, cluster.api(), options, started)
            status = pool.submit(first_status, cluster.api(), started)
            run_jobs(api, operator, options)
            wall, cpu, others = usage.wall(), usage.cpu(), usage.others()
            created_s, first_status_s = creation.result(), status.result()
        time.sleep(5)  # until the operator has sent its last events
        pods = options.jobs * (options.workers + options.ps)
        print_report(
            "cluster-load", wall, cpu, usage.memory(), jobs=options.jobs, pods=pods, first_status_s=first_status_s,
            created_s=created_s, objects_per_s=2 * pods / created_s,
            conflicts=int(operator.metric("rest_client_requests_total", code="409")),
            requests=int(operator.metric("rest_client_requests_total")), events=api.count(kube.core(NAMESPACE, "events")),
            cpu_s_after_5_s=usage.cpu(), **(fates := event_fates(operator)), **others)
    if fates["events_dropped"] + fates["events_given_up"] > 0:
        sys.exit("cluster-load: events that a user needs were lost")


if __name__ == "__main__":
    main()
