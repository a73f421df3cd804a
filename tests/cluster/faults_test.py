"""The operator beside an API server that is killed, stopped, set back, and lied to; and the operator killed at every call.
One cluster is enough for all cases."""
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


# What the class above was made of is not to run again by itself.
del AnswerFaults, CredentialFaults, GangFaults, ProcessFaults, ServerFaults, SurroundingFaults, WatchFaults

if __name__ == "__main__":
    unittest.main()
