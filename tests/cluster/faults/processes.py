"""Tests an operator whose process is killed, is asked to stop, runs twice, is cut off, or cannot
write its log."""
import itertools
import threading

from harness.cluster import poll
from harness.jobs import condition
from harness.proxy import Call, Drop, Lines, Stall, Stalled

from .case import PAUSED, STEADY, FaultsCase


class ProcessFaults(FaultsCase):
    def test_undisturbed(self):
        self.operator()
        self.create_bystanders()
        self.create()
        self.expect_life()
        poll("all run", 30, lambda: all(condition(self.job(name), "Running") for name in (STEADY, PAUSED)))
        self.disturb_bystanders()
        self.expect_bystanders()
        self.expect_calm(quiet=10)
        self.change({"status": {"replicaStatuses": {"Worker": {"active": 7}}}}, STEADY + "/status")
        self.expect_calm()
        self.suspend(PAUSED, False)
        poll("the paused one runs again", 30, lambda: self.job(PAUSED)["status"].get("ready") == "3/3")
        self.expect_calm()

    def test_the_disk_of_the_log_is_full(self):
        operator = self.operator(log="/dev/full")
        self.create()
        self.expect_life()
        self.expect_calm()
        self.assertEqual(operator.stop()[0], 0)

    def test_killed_at_every_call(self):
        """For every n, kills the operator with SIGKILL twice: before the n-th request for a job
        reaches the API server and, with another job, after the API server has responded to the n-th
        request."""
        operator = self.operator()
        operator.wait_ready()
        for executed in (False, True):
            for n in itertools.count(1):
                if not self.live_with_a_kill(operator, f"{'after' if executed else 'before'}-{n}", n, executed):
                    break
        self.assertGreater(n, 10)
        self.expect_calm(seconds=30)  # the garbage collector takes some time

    def live_with_a_kill(self, operator, name, n, executed):
        """Runs a job, and kills the operator at the n-th call for this job. Returns False if there
        were fewer than n calls."""
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
        self.delete(name)
        return bool(killed)

    def test_it_ends_while_pods_are_created(self):
        """Sends SIGTERM before the request for the n-th pod reaches the API server. Afterwards the
        request is either delivered or dropped."""
        operator = self.operator()
        operator.wait_ready()
        for n, executed in itertools.product((1, 8), (False, True)):
            count, ends = itertools.count(1), []

            def rule(request):
                if not (request.method == "POST" and request.path.endswith("/pods")) or next(count) != n:
                    return None
                return Call(lambda: ends.append(operator.stop()) or (None if executed else Drop()))

            def tend():
                if ends and not operator.running():
                    operator.start()

            with self.subTest(n=n, executed=executed):
                self.proxy.rule = rule
                jobs = [f"{'done' if executed else 'dropped'}-{n}-{i}" for i in range(4)]
                for name in jobs:
                    self.create(name)
                for name in jobs:
                    self.expect_life(name, tend=tend)
                self.assertEqual([status for status, _ in ends], [0])
                self.assertLess(ends[0][1], 2)
        self.proxy.rule = None
        self.expect_calm()

    def test_two_operators_at_once(self):
        """Two operators run without leader election, so each acts as if it were the only one."""
        self.operator()
        self.operator(kubeconfig=self.add_proxy().kubeconfig)
        self.create_bystanders()
        for i in range(5):
            self.create(f"job-{i}")
        self.disturb_bystanders()
        for i in range(5):
            self.expect_job(f"job-{i}", 60)
        self.expect_bystanders()
        self.expect_calm()

    def test_the_leader_is_cut_off(self):
        """No more data passes between the leader and the API server, but no connection is closed.
        Another operator takes over, and the old leader exits. It is started again after the fault, and must not write
        anything."""
        flags = ("--leader-elect", f"--leader-election-namespace={self.namespace}", "--leader-election-lease-duration=4s",
                 "--leader-election-renew-deadline=3s", "--leader-election-retry-period=1s")
        cut_off = threading.Event()

        def edit(line):
            if cut_off.is_set():
                raise Stalled
            return line

        def rule(request):
            if cut_off.is_set():
                return Stall()
            return Lines(edit) if request.watch else None
        self.proxy.rule = rule
        leader = self.operator(*flags)
        poll("it leads", 30, lambda: leader.metric("leader_election_master_status") == 1)
        other_proxy = self.add_proxy()
        other = self.operator(*flags, kubeconfig=other_proxy.kubeconfig)
        other.wait_ready()
        self.create_bystanders()
        for i in range(5):
            self.create(f"before-{i}")
        self.disturb_bystanders()
        poll("the first pods", 30, lambda: any(request.path.endswith("/pods") for request in self.writes()), every=0.01)
        cut_off.set()
        passed = len(self.proxy.requests)
        for i in range(5):
            self.create(f"after-{i}")
        poll("the old leader ended", 30, lambda: leader.status is not None)
        self.assertEqual(leader.status, 1)
        poll("the other leads", 30, lambda: other.metric("leader_election_master_status") == 1)
        cut_off.clear()
        leader.start().wait_ready()
        for i in range(5):
            self.create(f"later-{i}")
        for name in (f"{when}-{i}" for when in ("before", "after", "later") for i in range(5)):
            self.expect_job(name, 60)
        self.expect_bystanders()
        self.expect_calm()
        written = [str(request) for request in self.proxy.requests[passed:]
                   if request.write and request.code and "/leases" not in request.path]
        self.assertEqual(written, [])
        self.assertTrue(leader.running() and other.running())
