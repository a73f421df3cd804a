"""Tests the operator while the API server or etcd is killed, stopped or restored from a backup."""
import contextlib
import http.client
import shutil
import signal
import ssl
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
        """After SIGTERM, the API server does not close open watches. It is killed after a timeout,
        as a supervisor would do."""
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
        """After 34 seconds, the API server responds to a call with 504, but it may still execute
        the whole call, or a part of it, later."""
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
        """etcd is restored from a backup that was created while the jobs ran. Resource versions
        continue from smaller numbers, and the objects have their state from the time of the
        backup."""
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

    def test_etcd_answers_only_the_api_server(self):
        """etcd must reject all clients except the API server: a client that can write to etcd can
        do anything in the cluster, and every user of this machine can reach etcd's ports."""
        pki, first = self.cluster.state / "pki", int((self.cluster.state / "ports").read_text())

        def answer(port, certificate):
            context = ssl.create_default_context(cafile=pki / "etcd-ca.crt")
            if certificate:
                context.load_cert_chain(pki / f"{certificate}.crt", pki / f"{certificate}.key")
            connection = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=10)
            with contextlib.closing(connection):
                connection.request("GET", "/version")
                return connection.getresponse().status

        self.assertEqual(answer(first, "apiserver-to-etcd"), 200)
        for port in (first, first + 1):
            for certificate in (None, "admin", "kubelet"):
                with self.subTest(port=port, certificate=certificate), self.assertRaises(OSError):
                    answer(port, certificate)

    def restart_etcd(self, meanwhile):
        """Kills etcd, calls meanwhile(data_folder), and restarts etcd and all components that cache
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
        """Waits until the API server is ready. Restarts etcd and the API server if they have
        exited, as a supervisor does. The API server exits if etcd does not respond when the server
        starts."""
        def ready():
            for name in ("etcd", "kube-apiserver"):
                if not (component := self.cluster.component(name)).running():
                    print(f"{name} ended; it said last:", component.last_lines(), sep="\n", flush=True)
                    component.start()
            return self.api.raw("GET", "/readyz")[0] == 200
        poll("the API server is ready", 120, ready, every=0.5)
