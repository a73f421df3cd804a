"""Tests the operator with faults. For example, the API server is killed, stopped, restored from a
backup or returns wrong responses, and the operator is killed at every call. All cases share one
cluster. With TFJOB_SHARD=I/N in the environment, only every Nth case runs, starting with the Ith.
Several shards may run in parallel, each with its own cluster."""
import os
import unittest

from faults.answers import AnswerFaults
from faults.credentials import CredentialFaults
from faults.gangs import GangFaults
from faults.objects import ObjectFaults
from faults.processes import ProcessFaults
from faults.servers import ServerFaults
from faults.surroundings import SurroundingFaults
from faults.watches import WatchFaults


class FaultsTest(AnswerFaults, CredentialFaults, GangFaults, ObjectFaults, ProcessFaults, ServerFaults, SurroundingFaults,
                 WatchFaults):
    pass


# Only the class above is a test case. The tests of its base classes must not run a second time.
del AnswerFaults, CredentialFaults, GangFaults, ObjectFaults, ProcessFaults, ServerFaults, SurroundingFaults, WatchFaults


def load_tests(loader, _tests, _pattern):
    first, count = map(int, os.environ.get("TFJOB_SHARD", "1/1").split("/"))
    names = loader.getTestCaseNames(FaultsTest)[first - 1::count]
    return unittest.TestSuite(map(FaultsTest, names))


if __name__ == "__main__":
    unittest.main()
