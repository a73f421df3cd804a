#!/usr/bin/env python3
"""cluster-latency: measures the time from the acknowledged write of a pod's status until a watch
shows the TFJob's condition. In one job after another, worker 0 exits with code 0, so that the job
succeeds. All jobs run from the start, so the operator has cached all their pods."""
import queue
import statistics
import threading
import time

from cluster_case import NAMESPACE, Usage, arguments, environment, run_jobs, wait_quiet
from harness import api as kube
from harness.jobs import condition
from report import print_report

ENDED = {"status": {"phase": "Succeeded", "containerStatuses": [{
    "name": "tensorflow", "image": "fake", "imageID": "", "ready": False, "restartCount": 0,
    "state": {"terminated": {"exitCode": 0, "reason": "Completed"}}}]}}


def watch_ends(api, version, ends):
    """Puts (job, time) into the queue `ends` for each job that succeeds."""
    for _, job in api.watch(kube.tfjobs(NAMESPACE), version):
        if condition(job, "Succeeded"):
            ends.put((job["metadata"]["name"], time.monotonic()))


def measure(api, job, ends):
    """Returns two numbers of milliseconds until the job's condition is seen: counted from the
    response to the write of the pod's status, and counted from the request."""
    sent = time.monotonic()
    api.request("PATCH", kube.core(NAMESPACE, f"pods/{job}-worker-0/status"), ENDED,
                content_type="application/strategic-merge-patch+json")
    acknowledged = time.monotonic()
    while True:
        name, seen = ends.get(timeout=30)
        if name == job:
            return (seen - acknowledged) * 1e3, (seen - sent) * 1e3


def main():
    options = arguments()
    with environment(options) as (cluster, api, operator):
        run_jobs(api, operator, options)
        wait_quiet(operator.pid)
        ends = queue.SimpleQueue()
        version = api.get(kube.tfjobs(NAMESPACE) + "?limit=1")["metadata"]["resourceVersion"]
        threading.Thread(target=watch_ends, args=(cluster.api(), version, ends), daemon=True).start()
        usage = Usage(cluster, operator)
        samples = []
        for i in range(min(options.samples, options.jobs)):
            samples.append(measure(api, f"job-{i}", ends))
            time.sleep(0.05)
        from_answer, from_sending = (sorted(column) for column in zip(*samples))
        p99 = int(len(samples) * 0.99)
        print_report("cluster-latency", usage.wall(), usage.cpu(), usage.memory(), samples=len(samples),
                     pods=options.jobs * (options.workers + options.ps),
                     median_ms=statistics.median(from_answer), p99_ms=from_answer[p99],
                     median_from_sending_ms=statistics.median(from_sending), p99_from_sending_ms=from_sending[p99])


if __name__ == "__main__":
    main()
