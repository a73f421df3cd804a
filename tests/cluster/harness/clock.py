"""Sets or speeds up the clock of one process. See clock.c."""
import mmap
import pathlib
import struct
import subprocess
import tempfile

SOURCE = pathlib.Path(__file__).with_name("clock.c")


class ProcessClock:
    """Controls the clocks of a process that is started with `environment`. `speed` applies to the
    process's steady clock, and therefore to its deadlines and delays: at 30, half a minute passes
    in one second."""

    def __init__(self, speed=1.0):
        self._speed = speed

    def __enter__(self):
        self._folder = tempfile.TemporaryDirectory(prefix="tfjob-clock-")
        folder = pathlib.Path(self._folder.name)
        library, control = folder / "clock.so", folder / "control"
        subprocess.run(["gcc", "-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", library, SOURCE], check=True)
        control.write_bytes(struct.pack("dd", 0, self._speed))
        with open(control, "r+b") as file:
            self._control = mmap.mmap(file.fileno(), 0)
        self.environment = {"LD_PRELOAD": str(library), "TFJOB_TEST_CLOCK": str(control)}
        return self

    def __exit__(self, *_):
        self._control.close()
        self._folder.cleanup()

    def set(self, seconds):
        """Sets the wall clock this many seconds ahead of the real time."""
        self._control[:8] = struct.pack("d", seconds)
