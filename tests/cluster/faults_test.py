"""The operator beside an API server that is killed, stopped, set back, and lied to; and the operator killed at every call."""
import collections
import itertools
import os
import pathlib
import shutil
import signal
import tempfile
import time
import unittest

from harness import api as kube
from harness.cluster import Cluster, poll
from harness.invariants import violations
from harness.jobs import condition, tfjob
from harness.kubelet import Kubelet
from harness.process import Operator, build_operator
from harness.proxy import Answer, Call, Closed, Drop, FaultProxy, Lines

RETRYABLE = 130  # an exit code from 128 on, under ExitCode


def one_restart(kubelet):
    """Worker 1 fails once in a way that may be repeated; worker 0 ends well when worker 1 runs for the second time, and the
    parameter server too."""
    def script(index, attempt):
        job, kind, number = index
        if kind != "worker":
            return None
        if number == "1":
            return RETRYABLE if attempt == 0 else None
        second = len(kubelet().attempts[(job, "worker", "1")]) > 1 and kubelet().running((job, "worker", "1"))
        return 0 if second and kubelet().running((job, "ps", "0")) else None
    return script


class FaultsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Cluster())
        cls.cluster.install_crd()
        cls.program = os.environ.get("TFJOB_OPERATOR") or build_operator()
        cls.logs = pathlib.Path(os.environ.get("TFJOB_TEST_LOGS") or tempfile.mkdtemp())
        cls.numbers = itertools.count()

    def setUp(self):
        self.namespace = f"faults-{next(self.numbers)}"
        self.cluster.create_namespace(self.namespace)
        self.api = self.cluster.api()
        self.kubelet = self.enterContext(
            Kubelet(self.cluster.api(), self.namespace, one_restart(lambda: self.kubelet)))
        self.proxy = self.enterContext(FaultProxy(self.cluster))

    def operator(self, *flags, kubeconfig=None):
        """One that looks after this test's namespace, through the proxy."""
        log = self.logs / f"{self.id().rpartition('.')[2]}.log"
        return self.enterContext(Operator(self.program, kubeconfig or self.proxy.kubeconfig, f"--namespace={self.namespace}",
                                          "--leader-elect=false", *flags, log=log))

    def create(self, name="job"):
        job = tfjob(name, workers=2, ps=1, restart_policy="ExitCode", run_policy={"cleanPodPolicy": "Running"})
        self.api.create(kube.tfjobs(self.namespace), job)

    def job(self, name="job"):
        return self.api.get(kube.tfjobs(self.namespace) + "/" + name)

    def ended(self, name="job"):
        return condition(self.job(name), "Succeeded")

    def expect_life(self, name="job", seconds=60, tend=lambda: None):
        """The job succeeds; its pods, restarts and conditions are those of an undisturbed life. `tend` is called again and
        again meanwhile."""
        poll(f"{name} succeeded", seconds, lambda: tend() or self.ended(name), every=0.05)
        poll("services and running pods are gone", 30, lambda: tend() or not self.left(), every=0.05)
        self.assertFalse(condition(self.job(name), "Failed"))
        pods = {index[1:]: len(uids) for index, uids in self.kubelet.attempts.items() if index[0] == name}
        self.assertEqual(pods, {("ps", "0"): 1, ("worker", "0"): 1, ("worker", "1"): 2})
        self.assertEqual(self.job(name)["status"]["replicaStatuses"]["Worker"].get("restarts"), 1)
        self.assertEqual(self.kubelet.violations, [])

    def left(self):
        """What the end of all jobs should have taken away."""
        pods = self.api.items(kube.core(self.namespace, "pods"))
        return self.api.items(kube.core(self.namespace, "services")) or [
            pod for pod in pods if pod["status"].get("phase") == "Running"]

    def expect_calm(self, seconds=5):
        """Within so many seconds status says what is; and some time later nothing is written any more."""
        poll("no violation", seconds, lambda: not violations(self.api, self.namespace))
        poll("two seconds without a write", 30, lambda: time.monotonic() - self.writes()[-1].time > 2)

    def writes(self):
        return [request for request in self.proxy.requests if request.write and "/leases" not in request.path]

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

    def with_jobs(self, disturb, jobs=10):
        """Jobs are created before, while and after `disturb` does its work."""
        self.operator()
        for i in range(jobs):
            self.create(f"before-{i}")
        disturb()
        for i in range(jobs):
            self.create(f"after-{i}")
        for when, i in itertools.product(("before", "after"), range(jobs)):
            poll(f"{when}-{i} succeeded", 90, lambda when=when, i=i: self.ended(f"{when}-{i}"))
        pods = collections.Counter(len(uids) for uids in self.kubelet.attempts.values())
        self.assertEqual(pods, {1: 2 * 2 * jobs, 2: 2 * jobs})
        self.assertEqual(self.kubelet.violations, [])
        self.expect_calm()

    def test_the_api_server_is_killed_and_comes_back(self):
        def disturb():
            server = self.cluster.component("kube-apiserver")
            server.kill()
            time.sleep(2)
            server.start()
            poll("the API server is ready", 60, lambda: self.api.raw("GET", "/readyz")[0] == 200)
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
        poll("the API server is ready", 60, lambda: self.api.raw("GET", "/readyz")[0] == 200)
        components[0].start()

    def test_every_connection_is_cut_again_and_again(self):
        def disturb():
            for _ in range(20):
                time.sleep(0.1)
                self.proxy.cut()
        self.with_jobs(disturb)

    def expect_lives(self, rule, jobs=5, seconds=90):
        """Several jobs live as ever under a rule of the proxy."""
        self.proxy.rule = rule
        self.operator()
        for i in range(jobs):
            self.create(f"job-{i}")
        for i in range(jobs):
            self.expect_job(f"job-{i}", seconds)
        self.assertEqual(self.kubelet.violations, [])
        self.proxy.rule = None
        self.expect_calm()

    def expect_job(self, name, seconds):
        poll(f"{name} succeeded", seconds, lambda: self.ended(name))
        pods = {index[1:]: len(uids) for index, uids in self.kubelet.attempts.items() if index[0] == name}
        self.assertEqual(pods, {("ps", "0"): 1, ("worker", "0"): 1, ("worker", "1"): 2})
        self.assertEqual(self.job(name)["status"]["replicaStatuses"]["Worker"].get("restarts"), 1)

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

    @staticmethod
    def first_watches(request, seen, count=4):
        """Whether it is one of the first `count` watches of its kind of objects: who fails for ever is asked ever less."""
        seen[request.path] += request.watch
        return request.watch and seen[request.path] <= count

    def test_watches_are_cut_within_a_line(self):
        seen = collections.Counter()

        def rule(request):
            if not self.first_watches(request, seen):
                return None
            lines = itertools.count(1)

            def edit(line):
                if next(lines) % 4 == 0:
                    raise Closed(line[:len(line) // 2])
                return line
            return Lines(edit)
        self.expect_lives(rule)

    def test_watches_say_gone(self):
        gone = (b'{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","code":410,'
                b'"reason":"Expired","message":"too old resource version"}}\n')
        seen = collections.Counter()

        def rule(request):
            if not self.first_watches(request, seen):
                return None
            if seen[request.path] == 3:
                return Answer(410, reason="Expired")
            lines = itertools.count(1)
            return Lines(lambda line: gone if next(lines) == 5 else line)
        self.expect_lives(rule)

    def test_watches_stammer_and_babble(self):
        """Lines twice, lines of no known type, lines that are no JSON, no UTF-8."""
        seen = collections.Counter()

        def rule(request):
            if not self.first_watches(request, seen):
                return None
            lines = itertools.count()

            def edit(line):
                extra = [line, b'{"type":"SURPRISE","object":{}}\n', b"{half\n", b'{"type":"ADDED","object":"\xff\xfe"}\n']
                n = next(lines)
                return line + extra[n // 3 % len(extra)] if n % 3 == 2 else line
            return Lines(edit)
        self.expect_lives(rule)


if __name__ == "__main__":
    unittest.main()
