"""Starts a cluster with deploy/dev/cluster.sh, and stops and starts its components."""
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import time

from .api import Api

ROOT = pathlib.Path(__file__).resolve().parents[3]
SCRIPT = ROOT / "deploy/dev/cluster.sh"


def poll(what, seconds, ready, every=0.1):
    """Waits until ready() returns a true value, and returns this value. If this takes longer than
    `seconds`, raises a TimeoutError that names `what`. An exception from ready() counts as false;
    the TimeoutError contains the last exception."""
    deadline = time.monotonic() + seconds
    error = None
    while True:
        try:
            if value := ready():
                return value
        except Exception as failure:  # pylint: disable=broad-except
            error = failure
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {seconds} s: {what}" + (f" ({error})" if error else ""))
        time.sleep(every)


class Cluster:
    """A control plane in its own folder, with fake nodes or with this machine as a real node.
    Removed at the end of the `with` statement."""

    def __init__(self, fake_nodes=0, node=False, keep=False, flags=()):
        self.state = pathlib.Path(tempfile.mkdtemp(prefix="tfjob-cluster-"))
        self._keep = keep
        self._up = ["up", "--fake-nodes", str(fake_nodes), *([] if node else ["--control-plane-only"]), *flags]
        self.kubeconfig = self.state / "admin.kubeconfig"
        self._clients = []
        self._started = []  # children of this process, started by Component.start

    def __enter__(self):
        try:
            self._script(*self._up)
        except BaseException:
            self.__exit__()
            raise
        self.server = re.search(r'server: "(\S+)"', self.kubeconfig.read_text()).group(1)
        self.programs = pathlib.Path((self.state / "programs").read_text().strip())
        return self

    def __exit__(self, *_):
        for client in self._clients:
            client.close()
        if self._keep:
            print(f"kept: {SCRIPT} --state {self.state} down", flush=True)
            return
        for component in self.components():
            component.signal(signal.SIGCONT)
        self._script("down")
        for process in self._started:
            process.wait()
        shutil.rmtree(self.state, ignore_errors=True)

    def _script(self, *arguments):
        subprocess.run([SCRIPT, "--state", self.state, *arguments], check=True, stdout=subprocess.DEVNULL)

    def api(self):
        """Returns a client with the administrator's permissions. The client is closed when the
        cluster ends; the caller may close it earlier."""
        pki = self.state / "pki"
        self._clients.append(Api(self.server, pki / "ca.crt", pki / "admin.crt", pki / "admin.key"))
        return self._clients[-1]

    def kubectl(self, *arguments, text=None):
        return subprocess.run([self.programs / "kubectl", "--kubeconfig", self.kubeconfig, *arguments], check=True,
                              input=text, text=True, capture_output=True).stdout

    def helm(self, *arguments):
        folders = {f"HELM_{kind}_HOME": str(self.state / "helm") for kind in ("CACHE", "CONFIG", "DATA")}
        return subprocess.run([self.programs / "helm", "--kubeconfig", self.kubeconfig, *arguments], check=True, text=True,
                              stdout=subprocess.PIPE, env={**os.environ, **folders}).stdout

    def load_images(self, *archives):
        self._script("load-image", *archives)

    def component(self, name):
        return Component(self.state / "run" / name, self._started)

    def components(self):
        return [self.component(path.stem) for path in (self.state / "run").glob("*.pid")]

    def install_crd(self):
        self.kubectl("apply", "--server-side", "-f", str(ROOT / "crds/kubeflow.org_tfjobs.yaml"))
        with self.api() as api:
            poll("the CRD is served", 20, lambda: api.find("/apis/kubeflow.org/v1/tfjobs"))

    def pod_deletions(self, namespace):
        """Returns one line per request to delete a pod in a namespace: the time, the client, the
        pod and the response."""
        deletions = []
        for line in (self.state / "log/audit.log").read_text().splitlines():
            event = json.loads(line)
            if event.get("objectRef", {}).get("namespace") == namespace:
                deletions.append(f"{event['requestReceivedTimestamp']} {event['user'].get('username')} {event.get('userAgent')} "
                                 f"{event['requestURI']} {event.get('requestObject')} {event['responseStatus']['code']}")
        return deletions

    def create_namespace(self, name):
        with self.api() as api:
            api.create("/api/v1/namespaces", {"metadata": {"name": name}})
            poll("service account", 30, lambda: api.find(f"/api/v1/namespaces/{name}/serviceaccounts/default"))


class Component:
    """A process of the cluster, such as etcd or kube-apiserver, which `start` in
    deploy/dev/cluster/lib.sh has started."""

    def __init__(self, command, started):
        self._command, self._started = command, started

    @property
    def pid(self):
        return int(self._command.with_name(self._command.name + ".pid").read_text().split()[0])

    def running(self):
        return alive(self.pid)

    def last_lines(self, count=5):
        log = self._command.parents[1] / "log" / f"{self._command.name}.log"
        return "\n".join(log.read_text(errors="replace").splitlines()[-count:])

    def signal(self, number):
        try:
            os.kill(self.pid, number)
        except ProcessLookupError:
            pass

    def kill(self):
        """Kills the process without warning, as a power failure would. Returns when the process has
        exited."""
        self.signal(signal.SIGKILL)
        poll(f"{self._command.name} gone", 10, lambda: not alive(self.pid), every=0.01)

    def start(self):
        process = subprocess.Popen([self._command], start_new_session=True, stdin=subprocess.DEVNULL)
        self._started.append(process)
        poll(f"{self._command.name} has noted its id", 10, lambda: self.pid == process.pid, every=0.01)


def alive(pid):
    """Returns whether a process is running. A zombie is not."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
            return stat.read().rpartition(")")[2].split()[0] not in "ZX"
    except FileNotFoundError:
        return False
