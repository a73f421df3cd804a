"""The operator is killed, or is not alone; the API server and etcd are killed, stopped and set back; connections break and
writes are refused."""
import itertools
import shutil
import signal
import time

from harness import api as kube
from harness.cluster import poll
from harness.proxy import Answer, Call, Drop

from .case import FaultsCase


class ProcessFaults(FaultsCase):
    def test_undisturbed(self):
        self.operator()
        self.create()
        self.expect_life()
        self.expect_calm()

    def test_killed_at_every_call(self):
        """kill -9 before the API server is asked for the n-th time, and after it has answered, for every n."""
        operator = self.operator()
        operator.wait_ready()
        for executed in (False, True):
            for n in itertools.count(1):
                if not self.live_with_a_kill(operator, f"{'after' if executed else 'before'}-{n}", n, executed):
                    break
        self.assertGreater(n, 10)

    def live_with_a_kill(self, operator, name, n, executed):
        """False when the job made fewer than n calls."""
        count, killed = itertools.count(1), []

        def rule(request):
            if request.watch or name not in request.path + request.body.decode(errors="replace") or next(count) != n:
                return None
            killed.append(str(request))
            return Call(lambda: operator.kill() or Drop(executed), executed)

        self.proxy.rule = rule
        def tend():
            if not operator.running():
                operator.start()

        with self.subTest(n=n, executed=executed):
            self.create(name)
            self.expect_life(name, tend=tend)
        self.proxy.rule = None
        self.api.delete(kube.tfjobs(self.namespace) + "/" + name)
        return bool(killed)

    def test_two_operators_at_once(self):
        """Each believes that it is the only one."""
        self.operator()
        self.operator(kubeconfig=self.cluster.kubeconfig)
        for i in range(5):
            self.create(f"job-{i}")
        for i in range(5):
            poll(f"job-{i} succeeded", 60, lambda i=i: self.ended(f"job-{i}"))
        pods = {index: len(uids) for index, uids in self.kubelet.attempts.items()}
        self.assertEqual(set(pods.values()), {1, 2})
        self.assertEqual([index for index, count in pods.items() if count == 2 and index[1:] != ("worker", "1")], [])
        self.assertEqual(self.kubelet.violations, [])

    def test_the_api_server_is_killed_and_comes_back(self):
        def disturb():
            server = self.cluster.component("kube-apiserver")
            server.kill()
            time.sleep(2)
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

    def test_etcd_goes_back_to_the_past(self):
        """Versions begin again at smaller numbers, and objects are as they were while the jobs ran."""
        self.operator()
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
        self.assertEqual(self.kubelet.violations, [])
        self.expect_calm()

    def restart_etcd(self, meanwhile):
        """Kills etcd, calls meanwhile(its folder), and starts it and all that keep state of it."""
        components = [self.cluster.component(name) for name in ("kube-controller-manager", "kube-apiserver", "etcd")]
        for component in components:
            component.kill()
        meanwhile(self.cluster.state / "etcd")
        components[2].start()
        components[1].start()
        self.await_api_server()
        components[0].start()

    def await_api_server(self):
        """As a supervisor does, it starts a server that gave up: the API server ends when etcd does not answer at first."""
        def ready():
            for name in ("etcd", "kube-apiserver"):
                if not (component := self.cluster.component(name)).running():
                    print(f"{name} ended; it said last:", component.last_lines(), sep="\n", flush=True)
                    component.start()
            return self.api.raw("GET", "/readyz")[0] == 200
        poll("the API server is ready", 120, ready, every=0.5)

    def test_every_connection_is_cut_again_and_again(self):
        def disturb():
            for _ in range(20):
                time.sleep(0.1)
                self.proxy.cut()
        self.with_jobs(disturb)

    def test_writes_are_refused_for_a_time(self):
        answers = [Answer(429, reason="TooManyRequests", headers={"Retry-After": "1"}), Answer(500), Answer(503), Answer(504),
                   Answer(409, reason="Conflict")]
        numbers = itertools.count()

        def rule(request):
            if not request.write or "/events" in request.path:
                return None
            n = next(numbers)
            return answers[n // 2 % len(answers)] if n % 2 and n < 60 else None
        self.expect_lives(rule)

    def test_answers_to_writes_are_lost(self):
        """The API server did it, and nobody heard of it."""
        seen = set()

        def rule(request):
            key = (request.method, request.path, request.body if request.method == "POST" else b"")
            if not request.write or key in seen:
                return None
            seen.add(key)
            return Drop(executed=True)
        self.expect_lives(rule)
