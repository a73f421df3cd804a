"""Faults of the servers: the API server and etcd are killed, stopped and restored from a backup."""
import shutil
import signal
import threading
import time

from harness.cluster import poll
from harness.jobs import condition
from harness.proxy import Call

from .case import STEADY, FaultsCase


class ServerFaults(FaultsCase):
    def test_the_api_server_is_killed_and_comes_back(self):
        def disturb():
            server = self.cluster.component("kube-apiserver")
            server.kill()
            time.sleep(2)
            server.start()
            self.await_api_server()
        self.with_jobs(disturb)

    def test_the_api_server_is_asked_to_end(self):
        """It does not close open watches, and a supervisor kills it after a timeout."""
        def disturb():
            server = self.cluster.component("kube-apiserver")
            server.signal(signal.SIGTERM)
            time.sleep(5)
            server.kill()
            server.start()
            self.await_api_server()
        self.with_jobs(disturb)

    def test_the_api_server_stops_for_a_while(self):
        def disturb():
            server = self.cluster.component("kube-apiserver")
            server.signal(signal.SIGSTOP)
            time.sleep(20)
            server.signal(signal.SIGCONT)
        self.with_jobs(disturb)

    def test_etcd_stops_while_pods_are_created(self):
        """After 34 seconds the API server gives up a call with 504; the call may be done later, or
        half of it."""
        etcd, stopped = self.cluster.component("etcd"), threading.Event()

        def rule(request):
            if stopped.is_set() or not request.path.endswith("/pods") or b"in-flight" not in request.body:
                return None
            stopped.set()
            return Call(lambda: etcd.signal(signal.SIGSTOP))

        def disturb():
            self.proxy.rule = rule
            self.create("in-flight")
            poll("etcd stopped", 30, stopped.is_set)
            time.sleep(40)
            etcd.signal(signal.SIGCONT)
            self.await_api_server()
        self.with_jobs(disturb)
        self.assertIn(504, [request.code for request in self.writes() if request.path.endswith("/pods")])
        self.expect_life("in-flight")

    def test_etcd_goes_back_to_the_past(self):
        """Versions start again from smaller numbers, and objects are as they were while
        the jobs ran."""
        self.operator()
        self.create(STEADY)
        for i in range(5):
            self.create(f"job-{i}")
        past = self.logs / "etcd"
        self.restart_etcd(lambda data: shutil.copytree(data, past))
        for i in range(5):
            poll(f"job-{i} succeeded", 90, lambda i=i: self.ended(f"job-{i}"))

        def restore(data):
            shutil.rmtree(data)
            past.rename(data)
        self.restart_etcd(restore)
        self.create("later")
        for name in ("later", *(f"job-{i}" for i in range(5))):
            poll(f"{name} succeeded", 120, lambda name=name: self.ended(name))
        poll("steady runs", 60, lambda: condition(self.job(STEADY), "Running"))
        self.expect_calm()

    def restart_etcd(self, meanwhile):
        """Kills etcd, calls meanwhile(its folder), and starts etcd and all components that cache
        its state."""
        components = [self.cluster.component(name) for name in ("kube-controller-manager", "kube-apiserver", "etcd")]
        for component in components:
            component.kill()
        meanwhile(self.cluster.state / "etcd")
        components[2].start()
        components[1].start()
        self.await_api_server()
        components[0].start()

    def await_api_server(self):
        """Restarts a server that exited, as a supervisor does: the API server exits if etcd does
        not answer at first."""
        def ready():
            for name in ("etcd", "kube-apiserver"):
                if not (component := self.cluster.component(name)).running():
                    print(f"{name} ended; it said last:", component.last_lines(), sep="\n", flush=True)
                    component.start()
            return self.api.raw("GET", "/readyz")[0] == 200
        poll("the API server is ready", 120, ready, every=0.5)
