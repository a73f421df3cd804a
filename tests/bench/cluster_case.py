"""Provides common functions for the cases with a real API server. Runs a control plane with fake
nodes on this machine, runs the operator as a process, and measures the CPU time of each
component."""
import argparse
import contextlib
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cluster"))
# pylint: disable=wrong-import-position
from harness import api as kube  # noqa: E402
from harness.cluster import Cluster, poll  # noqa: E402
from harness.jobs import NAMESPACE, create_jobs, tfjob, wait_state  # noqa: E402
from harness.process import Operator, build_operator, cpu_seconds, memory_mb, total  # noqa: E402

COMPONENTS = ("kube-apiserver", "etcd", "kube-controller-manager", "kube-scheduler", "kwok")
WRITTEN = ("tfjobs", "pods", "services", "events", "configmaps")
WRITES = ("POST", "PUT", "PATCH", "DELETE")


def arguments(**defaults):
    """Returns a parser for the flags that all cases share."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--operator", help="the program; built when it is not given")
    parser.add_argument("--flag", action="append", default=[], help="a flag for the operator")
    parser.add_argument("--jobs", type=int, default=defaults.get("jobs", 1000))
    parser.add_argument("--workers", type=int, default=defaults.get("workers", 4))
    parser.add_argument("--ps", type=int, default=defaults.get("ps", 2))
    parser.add_argument("--nodes", type=int, default=100, help="fake ones, of 110 pods each")
    parser.add_argument("--samples", type=int, default=defaults.get("samples", 300))
    parser.add_argument("--seconds", type=float, default=defaults.get("seconds", 60))
    parser.add_argument("--log", help="a file for the operator's log")
    parser.add_argument("--keep", action="store_true", help="leaves the cluster running")
    return parser.parse_args()


class Usage:
    """Measures CPU time since its construction."""

    def __init__(self, cluster, operator):
        self._pids = {name: cluster.component(name).pid for name in COMPONENTS} | {"operator": operator.pid}
        self._operator = operator
        self._started = time.monotonic()
        self._before = {name: cpu_seconds(pid) for name, pid in self._pids.items()}

    def wall(self):
        return time.monotonic() - self._started

    def cpu(self, name="operator"):
        return cpu_seconds(self._pids[name]) - self._before[name]

    def others(self):
        """Returns the CPU time that the load causes in each of the other components."""
        return {f"{name.removeprefix('kube-').replace('-', '_')}_cpu_s": self.cpu(name) for name in COMPONENTS}

    def memory(self):
        return memory_mb(self._operator.pid)


@contextlib.contextmanager
def environment(options):
    """Yields (cluster, api, operator) as soon as all are ready. There are no jobs yet."""
    program = options.operator or build_operator()
    with Cluster(fake_nodes=options.nodes, keep=options.keep) as cluster:
        cluster.install_crd()
        cluster.create_namespace(NAMESPACE)
        # The API server delays the first creation of a new kind by two seconds, so that other
        # servers discover the kind.
        cluster.api().create(kube.tfjobs(NAMESPACE) + "?dryRun=All", tfjob("first", 1, 0))
        with Operator(program, cluster.kubeconfig, *options.flag, log=options.log) as operator:
            operator.wait_ready()
            yield cluster, cluster.api(), operator


def run_jobs(api, operator, options, seconds=1800):
    """Creates the jobs and waits until all of them are Running. Polls the operator's gauge, because
    polling the API server for all jobs would cause additional load. Finally checks the states on
    the API server."""
    create_jobs(api, [tfjob(f"job-{i}", options.workers, options.ps) for i in range(options.jobs)])
    poll(f"{options.jobs} jobs Running", seconds,
         lambda: operator.metric("tfjob_jobs", state="Running") >= options.jobs, every=2)
    wait_state(api, "Running", options.jobs, 10)


def writes(api):
    """Returns the API server's count of writes to the kinds of objects that the operator writes.
    Includes the writes of all clients."""
    page = api.raw("GET", "/metrics")[1].decode()
    return sum(int(total(page, "apiserver_request_total", resource=resource, verb=verb))
               for resource in WRITTEN for verb in WRITES)


def wait_quiet(pid, idle=1.0, share=0.02, seconds=60):
    """Waits until a process has used less than `share` of a CPU for `idle` seconds. Returns the
    seconds from the call until the process last used more than that."""
    start = last_work = time.monotonic()
    used = cpu_seconds(pid)
    while (now := time.monotonic()) - start < seconds:
        if now - last_work > idle:
            return last_work - start
        time.sleep(0.02)
        if cpu_seconds(pid) - used > share * idle:
            used, last_work = cpu_seconds(pid), time.monotonic()
    raise TimeoutError(f"process {pid} is not quiet after {seconds} s")
