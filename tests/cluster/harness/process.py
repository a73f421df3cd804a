"""Reads measurements of a process from /proc, and runs the operator as a process."""
import os
import pathlib
import signal
import socket
import subprocess
import time
import urllib.request

from .cluster import ROOT, poll

TICK = os.sysconf("SC_CLK_TCK")


def cpu_seconds(pid):
    """Returns the user and system time of a process, summed over all its threads."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def memory_mb(pid, field="VmHWM"):
    """Returns the peak resident memory, or the current resident memory if `field` is VmRSS."""
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        for line in status:
            if line.startswith(field + ":"):
                return int(line.split()[1]) / 1024
    raise KeyError(field)


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def build_operator(config="--config=release"):
    """Builds the operator and returns the program's path."""
    target = "//operator/service:tfjob-operator"
    subprocess.run(["bazel", "build", config, target], check=True, cwd=ROOT, stderr=subprocess.DEVNULL)
    folder = subprocess.check_output(["bazel", "info", config, "bazel-bin"], cwd=ROOT, text=True,
                                     stderr=subprocess.DEVNULL).strip()
    return f"{folder}/operator/service/tfjob-operator"


class Operator:
    """An operator that runs outside of the cluster."""

    def __init__(self, program, kubeconfig, *flags, log=None, environment=None):
        """Does not start the process. `environment` is added to the environment of the test
        process."""
        self._program, self._kubeconfig, self._flags, self._log = program, kubeconfig, flags, log
        self._environment = {**os.environ, **(environment or {})}
        self._process = None

    def start(self):
        self.health, self.metrics = free_port(), free_port()
        command = [self._program, f"--kubeconfig={self._kubeconfig}",
                   f"--health-probe-bind-address=127.0.0.1:{self.health}",
                   f"--metrics-bind-address=127.0.0.1:{self.metrics}", *self._flags]
        with open(self._log or os.devnull, "ab") as log:
            self._process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                             env=self._environment)
        return self

    @property
    def pid(self):
        return self._process.pid

    def running(self):
        return self._process is not None and self._process.poll() is None

    @property
    def status(self):
        """Returns the operator's exit status, or None while it is running."""
        return self._process.poll()

    def said(self, text):
        """Returns whether the operator's log contains the text."""
        return text in pathlib.Path(self._log).read_text(encoding="utf-8", errors="replace")

    def ready(self):
        return fetch(self.health, "/readyz") is not None

    def wait_ready(self, seconds=30):
        """Waits until the operator reports that it is ready. Returns the time that this took, in
        seconds."""
        start = time.monotonic()

        def ready():
            if not self.running():
                raise ChildProcessError(f"the operator ended with status {self._process.returncode}; see {self._log}")
            return self.ready()

        poll("the operator is ready", seconds, ready, every=0.01)
        return time.monotonic() - start

    def kill(self):
        self._process.kill()
        self._process.wait()

    def stop(self, seconds=30):
        """Asks the operator to stop, and waits until it has exited. Returns (exit status, seconds
        waited)."""
        start = time.monotonic()
        if self.running():
            self._process.send_signal(signal.SIGTERM)
        try:
            status = self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.kill()
            status = -signal.SIGKILL
        return status, time.monotonic() - start

    def metric(self, name, **labels):
        """Returns the sum of a metric's samples that have these labels, or 0 if there are none."""
        return total(fetch(self.metrics, "/metrics") or "", name, **labels)

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        if self.running():
            self.kill()


def fetch(port, path):
    """Returns the page, or None if it is not available."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            return answer.read().decode()
    except OSError:
        return None


def total(page, name, **labels):
    """Returns the sum of the samples of the metric `name` that have these labels. `page` is in
    Prometheus' text format."""
    sum_ = 0.0
    for line in page.splitlines():
        if line.startswith(name) and line[len(name):len(name) + 1] in ("{", " "):
            if all(f'{key}="{value}"' in line for key, value in labels.items()):
                sum_ += float(line.rpartition(" ")[2])
    return sum_
