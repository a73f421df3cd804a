"""The operator beside an API server that is killed, stopped, set back, and lied to; and the operator killed at every call.
One cluster is enough for all cases."""
import unittest

from faults.processes import ProcessFaults
from faults.surroundings import SurroundingFaults
from faults.watches import WatchFaults


class FaultsTest(ProcessFaults, SurroundingFaults, WatchFaults):
    pass


# What the class above was made of is not to run again by itself.
del ProcessFaults, SurroundingFaults, WatchFaults

if __name__ == "__main__":
    unittest.main()
