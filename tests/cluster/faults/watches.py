"""Tests the operator with lists and watches that break, deliver invalid data, lag or become
silent."""
import collections
import concurrent.futures
import itertools
import json
import random
import time

from harness import api as kube
from harness.clock import ProcessClock
from harness.cluster import poll
from harness.jobs import tfjob
from harness.messages import Closed
from harness.proxy import Answer, Late, Lines, Stalled

from .case import FaultsCase


def interleaved(lines, choose):
    """Returns the lines in another order. Lines about the same object keep their order, and no line
    moves across a bookmark."""
    queues, out = collections.defaultdict(collections.deque), []

    def flush():
        while queues:
            uid = choose(sorted(queues))
            out.append(queues[uid].popleft())
            if not queues[uid]:
                del queues[uid]

    for line in lines:
        uid = json.loads(line)["object"]["metadata"].get("uid")
        if uid is None:
            flush()
            out.append(line)
        else:
            queues[uid].append(line)
    flush()
    return out


class WatchFaults(FaultsCase):
    @staticmethod
    def first_watches(request, seen, count=4):
        """Returns whether this is one of the first `count` watches of its kind. Only these watches
        fail, because endless failures would increase the backoff more and more."""
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
        """Watches end with an error: 410 (expired), 429 (too many requests) or 500 (internal
        error)."""
        errors = {1: (410, "Expired"), 2: (429, "TooManyRequests"), 4: (500, "InternalError")}
        seen = collections.Counter()

        def rule(request):
            if not self.first_watches(request, seen):
                return None
            if seen[request.path] == 3:
                return Answer(410, reason="Expired")
            code, reason = errors[seen[request.path]]
            status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason}
            error = json.dumps({"type": "ERROR", "object": status}).encode() + b"\n"
            lines = itertools.count(1)
            return Lines(lambda line: error if next(lines) == 5 else line)
        self.expect_lives(rule)

    def test_watches_stammer_and_babble(self):
        """Watches contain duplicate lines, lines of an unknown type, and lines that are not JSON or
        not UTF-8."""
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

    def test_watches_come_in_pieces(self):
        """Each line arrives in two pieces. A line with a multi-byte character is split within that
        character."""
        cut = collections.Counter()

        def edit(line):
            wide = next((i for i, byte in enumerate(line) if byte >= 0x80), None)
            cut[wide is not None] += 1
            at = len(line) // 2 if wide is None else wide + 1
            return [line[:at], line[at:]]

        def speak(job):
            job["metadata"]["annotations"] = {"tfjob.test/size": "größer ✓"}
            job["spec"]["tfReplicaSpecs"]["Worker"]["template"]["metadata"]["annotations"] = {"tfjob.test/size": "¼ 你好"}
        self.expect_lives(lambda request: Lines(edit) if request.watch else None, change=speak, given=lambda: cut[True] > 20)

    def test_watches_have_long_lines(self):
        """One line has 10 MB, and must be read. Another line is too long, so the operator must list
        everything again."""
        seen = collections.Counter()

        def rule(request):
            if not self.first_watches(request, seen, count=1):
                return None
            lengths, lines = {3: 10 << 20, 6: 17 << 20}, itertools.count(1)
            return Lines(lambda line: line[:-1] + b" " * lengths.get(next(lines), 0) + b"\n")
        self.expect_lives(rule, given=lambda: len([path for path in seen if seen[path] > 1]) == 3)

    def test_watches_fall_silent(self):
        """Connections stay open, but no more data arrives: for services from the start of the list,
        and for jobs and pods later. The operator's deadlines are minutes, so the test makes its
        steady clock run faster."""
        seen = collections.Counter()

        def rule(request):
            if not self.first_watches(request, seen, count=1):
                return None
            lines = itertools.count(1)

            def edit(line):
                if next(lines) > {"tfjobs": 3, "pods": 5, "services": 0}[request.path.rpartition("/")[2]]:
                    raise Stalled
                return line
            return Lines(edit)
        self.proxy.rule = rule
        clock = self.enterContext(ProcessClock(speed=30))
        self.operator(environment=clock.environment)
        self.create()
        self.expect_life(seconds=60)

        def silent():
            watches = collections.Counter(request.path for request in self.proxy.requests if request.watch)
            return [path for path in watches if watches[path] < 2]
        # The operator may not give up the watch of jobs before the job has ended.
        poll("every watch was given up", 60, lambda: not silent())
        self.create("later")
        self.expect_life("later")
        self.expect_calm()

    def test_watches_lag_and_change_the_order(self):
        """Events of one kind at a time arrive late, so pods sometimes lag behind jobs and services,
        and sometimes jobs lag behind pods. Events are also reordered."""
        dice = random.Random(20)

        def rule(request):
            kinds = ["pods", "tfjobs", "services"]
            turn = kinds.index(request.path.rpartition("/")[2]) if request.watch else None

            def lag():
                return 0.8 if int(time.monotonic() / 2) % len(kinds) == turn else 0.05 * dice.random()
            return Late(lag, lambda lines: interleaved(lines, dice.choice)) if request.watch else None
        self.expect_lives(rule)

    def test_a_list_expires_between_its_pages(self):
        """The server does not support streaming lists. The continue token for the second page has
        always expired."""
        elsewhere = {"managedBy": "kueue.x-k8s.io/multikueue"}
        jobs = [tfjob(f"elsewhere-{i}", run_policy=elsewhere) for i in range(510)]
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda job: self.api.create(kube.tfjobs(self.namespace), job), jobs))
        self.create("last-of-all")

        def rule(request):
            if request.query.get("sendInitialEvents"):
                return Answer(400, "unknown parameter", reason="BadRequest")
            if request.query.get("continue"):
                return Answer(410, "the continue token is too old", reason="Expired")
            return None
        self.proxy.rule = rule
        self.operator()
        self.expect_life("last-of-all")
        lists = [request for request in self.proxy.requests
                 if request.method == "GET" and not request.watch and request.path == kube.tfjobs(self.namespace)]
        pages = [(request.query.get("limit"), "continue" in request.query, request.code) for request in lists]
        self.assertEqual(pages, [("500", False, 200), ("500", True, 410), (None, False, 200)])
        self.expect_calm()
