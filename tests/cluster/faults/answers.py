"""Tests the operator with faulty responses: connections that break, and responses that are lost or
replaced."""
import collections
import itertools
import random
import time

from harness.clock import ProcessClock
from harness.proxy import Answer, Ask, Drop, Gzip

from .case import FaultsCase

# Error responses to a list, to a watch, or to the request for the version from which to continue.
REFUSALS = [
    Answer(401, reason="Unauthorized"), Answer(403, reason="Forbidden"), Answer(404, reason="NotFound"),
    Answer(429, reason="TooManyRequests"), Answer(429, reason="TooManyRequests", headers={"Retry-After": "2"}),
    Answer(500, reason="InternalError"), Answer(503, reason="ServiceUnavailable"),
    # The response of an API server that lags behind the server that the client used previously.
    Answer(504, "Timeout: Too large resource version: 9, current: 1", reason="Timeout", details={
        "retryAfterSeconds": 1, "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]})]


class AnswerFaults(FaultsCase):
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
        """The API server executes each write, but the operator never gets the response."""
        seen = set()

        def rule(request):
            key = (request.method, request.path, request.body if request.method == "POST" else b"")
            if not request.write or key in seen:
                return None
            seen.add(key)
            return Drop(executed=True)
        self.expect_lives(rule)

    def test_lists_and_watches_are_refused(self):
        """For each kind of object, the requests get each of the error responses once, in random
        order, and watches end every second. Because repeated failures increase the backoff, the
        operator's steady clock runs faster."""
        dice = random.Random(21)
        given = collections.defaultdict(list)  # path: refusals
        order = {}

        def rule(request):
            if request.path.rpartition("/")[2] not in ("tfjobs", "pods", "services") or request.method != "GET":
                return None
            refusals, path = given[request.path], request.path
            order.setdefault(path, dice.sample(REFUSALS, len(REFUSALS)))
            if len(refusals) == len(REFUSALS):
                return None
            if dice.random() < 0.5:
                refusals.append(order[path][len(refusals)])
                return refusals[-1]
            return Ask({"timeoutSeconds": "1"}) if request.watch else None
        clock = self.enterContext(ProcessClock(speed=10))
        self.expect_lives(rule, environment=clock.environment, given=lambda: [
            len(refusals) for refusals in given.values()] == 3 * [len(REFUSALS)])

    def test_watches_end_every_second(self):
        """A watch that ends too early counts as a failure, so later watches last two seconds."""
        seen = collections.Counter()

        def rule(request):
            if not request.watch:
                return None
            seen[request.path] += 1
            return Ask({"timeoutSeconds": "1" if seen[request.path] <= 4 else "2"})
        self.expect_lives(rule, given=lambda: min(seen.values()) > 5)

    def test_answers_are_compressed(self):
        """Compresses the first response to each method on each path, although the client did not
        request this. Streaming lists are rejected, because servers do not compress watches."""
        seen = set()

        def rule(request):
            if request.query.get("sendInitialEvents"):
                return Answer(400, "unknown parameter", reason="BadRequest")
            key = (request.method, request.path)
            if request.watch or key in seen:
                return None
            seen.add(key)
            return Gzip()
        self.expect_lives(rule)
        self.assertEqual({"GET", "POST", "PUT", "DELETE"} - {method for method, _ in seen}, set())
