"""Tests the operator with an API server that is killed, stopped, restored from a backup or answers
wrongly, and kills the operator at every call. All cases share one cluster."""
import unittest

from faults.answers import AnswerFaults
from faults.credentials import CredentialFaults
from faults.gangs import GangFaults
from faults.processes import ProcessFaults
from faults.servers import ServerFaults
from faults.surroundings import SurroundingFaults
from faults.watches import WatchFaults


class FaultsTest(AnswerFaults, CredentialFaults, GangFaults, ProcessFaults, ServerFaults, SurroundingFaults, WatchFaults):
    pass


# The base classes of the class above must not run again by themselves.
del AnswerFaults, CredentialFaults, GangFaults, ProcessFaults, ServerFaults, SurroundingFaults, WatchFaults

if __name__ == "__main__":
    unittest.main()
