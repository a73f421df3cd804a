#!/usr/bin/env python3
"""scale-model: fits the costs of all-reduces over TCP from measurements with two ranks and three sizes,
and predicts all-reduces with more ranks and other sizes. Compares the predictions with measurements, and
reports those that differ by more than 20 %. Then prints predictions for 512 ranks over links of 10, 25
and 100 Gb/s. These are simulated, not measured.

The work of an operation is that of its busiest rank, as the plans count it: frames sent and received,
bytes sent. It takes the same CPU time wherever the ranks run. n ranks share c cores:

  seconds = rounds · α + s · (frames · f + sent · β), where s = max(1, n/c)

α is the time from the end of a rank's work until the next round can begin, because the core was idle. β
is the cost of a byte that one rank sends and another one receives and adds. It has one value if the
values of a rank, with those that it receives, fit into a core's second-level cache, and another one if
they do not. All four costs come from two ranks:

  f       CPU time of the smallest size, if both ranks are bound to one core; there, a rank that waits
          hands the core to the other rank, and no core is ever idle
  α       time of the smallest size with a core per rank, without its frames and bytes
  β       CPU time of the middle and of the largest size with a core per rank, without the frames

A core that becomes idle and wakes up again also costs CPU time, in proportion to the time for which it
is idle. The smallest size shows the factor, because its work is known. This CPU time is deducted from
the other sizes: with more ranks than cores, no core becomes idle."""
import argparse
import dataclasses
import json
import os
import pathlib
import resource
import subprocess
import time

from report import print_report

ROOT = pathlib.Path(__file__).resolve().parents[2]
TARGETS = ["//tests/bench:allreduce", "//tests/bench:collective_work"]
SMALL, MIDDLE, LARGE = 64, 256 << 10, 64 << 20  # measured with two ranks
OTHER_SIZES = [1 << 10, 32 << 10, 1 << 20, 8 << 20, 32 << 20]
CACHE = pathlib.Path("/sys/devices/system/cpu/cpu0/cache/index2/size")  # "2048K"
TOLERANCE = 0.2
# The simulated network.
RANKS, ALPHA, LINKS = 512, 20e-6, (10e9, 25e9, 100e9)
TABLE_SIZES = [64 << 10, 1 << 20, 25 << 20, 100 << 20]
SERVERS = (8, 64, 512)


def lines_of(command, cores):
    """Runs the program on these cores. Returns the JSON lines that it prints."""
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, text=True, check=True,
                          preexec_fn=lambda: os.sched_setaffinity(0, cores))
    return [json.loads(line) for line in done.stdout.splitlines()]


@dataclasses.dataclass
class Work:
    """The work of the busiest rank."""
    rounds: float
    frames: float
    sent: float  # bytes


@dataclasses.dataclass
class Times:
    """The times of an operation, in seconds."""
    wall: float
    cpu: float  # of one rank


def cache_bytes():
    """Returns the size of a core's second-level cache."""
    text = CACHE.read_text().strip()
    return int(text.rstrip("KM")) << {"K": 10, "M": 20}[text[-1]]


class Model:
    def __init__(self, folder, rounds):
        self._allreduce, self._work = pathlib.Path(folder, "allreduce"), pathlib.Path(folder, "collective_work")
        self._rounds = rounds
        self.cores, self.cache = sorted(os.sched_getaffinity(0)), cache_bytes()
        # The costs, in seconds: of a round, of a frame, and of a byte in the cache and beyond it.
        self.round = self.frame = self.near_byte = self.far_byte = None

    def measure(self, ranks, sizes, cores=None):
        """Returns the times of an all-reduce by size. By default, the ranks run on all cores."""
        lines = lines_of([self._allreduce, "--ranks", ranks, "--rounds", self._rounds, "--bytes", *sizes],
                         cores or self.cores)
        return {line["bytes"]: Times(line["seconds"], line["cpu_seconds_per_gb"] * line["bytes"] * 1e-9)
                for line in lines if line["what"] == "tfjob"}

    def works(self, ranks, sizes):
        """Returns the work of each algorithm, by size and by the algorithm's name, and the name of the
        chosen algorithm by size."""
        works, chosen = {}, {}
        for line in lines_of([self._work, "--ranks", ranks, "--bytes", *sizes], self.cores):
            work = Work(line["rounds"], line["frames"], line["sent"])
            works.setdefault(line["bytes"], {})[line["algorithm"]] = work
            if line["chosen"]:
                chosen[line["bytes"]] = line["algorithm"]
        return works, chosen

    def fit(self):
        if len(self.cores) < 2:
            raise SystemExit("scale-model needs two cores, to measure ranks that do not share a core; this process "
                             f"may use only core {self.cores[0]}")
        sizes = [SMALL, MIDDLE, LARGE]
        apart, together = self.measure(2, sizes), self.measure(2, [SMALL], self.cores[:1])[SMALL]
        works, chosen = self.works(2, sizes)
        work = {size: works[size][chosen[size]] for size in sizes}
        small = apart[SMALL]
        idle = small.wall - small.cpu
        waking = max(0, small.cpu - together.cpu) / idle if idle > 0 else 0  # CPU time per time that a core is idle

        def byte_cost(size):
            times = apart[size]
            busy = times.cpu - waking * max(0, times.wall - times.cpu)
            return max(0, busy - work[size].frames * self.frame) / work[size].sent

        self.frame = together.cpu / work[SMALL].frames
        self.near_byte, self.far_byte = byte_cost(MIDDLE), byte_cost(LARGE)
        self.round = max(0, small.wall - self.busy(SMALL, work[SMALL])) / work[SMALL].rounds
        return {"apart": apart, "together": {SMALL: together}}

    def byte(self, size, work):
        # In all algorithms, a rank receives as many bytes as it sends. In those that move many bytes, it sends
        # half of them again after adding them.
        return self.near_byte if size + work.sent / 2 <= self.cache else self.far_byte

    def busy(self, size, work):
        """Returns the CPU time of a rank."""
        return work.frames * self.frame + work.sent * self.byte(size, work)

    def predict(self, size, work, ranks):
        return work.rounds * self.round + max(1, ranks / len(self.cores)) * self.busy(size, work)


def compare(model, ranks, report):
    """Reports predictions and measurements. Returns the numbers of predictions and of misses."""
    measured = model.measure(ranks, OTHER_SIZES)
    works, chosen = model.works(ranks, list(measured))
    misses = 0
    for size, times in measured.items():
        work = works[size][chosen[size]]
        predicted = model.predict(size, work, ranks)
        miss = abs(predicted / times.wall - 1) > TOLERANCE
        misses += miss
        report(what="prediction", ranks=ranks, bytes=size, algorithm=chosen[size], predicted_s=predicted,
               measured_s=times.wall, ratio=predicted / times.wall, miss=miss,
               predicted_cpu_s=model.busy(size, work), measured_cpu_s=times.cpu)
    return len(measured), misses


def server_seconds(size, servers, alpha, frame, byte):
    """Returns how long all ranks take to send their gradients to the servers and to get values back. Each
    server has an equal part, and its own link."""
    part = size / servers
    frames = 2 * max(RANKS, servers)  # of a server, or of a rank: one frame per exchange and peer
    busiest = max(RANKS * part, size) * byte  # of a server's link, or of a rank's link
    return 2 * (alpha + busiest) + frames * frame


def simulate(model, report):
    """Reports the times for RANKS ranks with one link and one core each. A byte takes as long as the slower
    of the two: the link, or the core, whose costs come from the fit."""
    works, _ = model.works(RANKS, TABLE_SIZES)
    for factor in (1, 2):
        for link in LINKS:
            alpha, link_byte = factor * ALPHA, factor * 8 / link
            for size in TABLE_SIZES:
                seconds = {f"{name}_s": work.rounds * alpha + work.frames * model.frame +
                           work.sent * max(link_byte, model.byte(size, work))
                           for name, work in works[size].items() if name != "exchange"}
                byte = max(link_byte, model.far_byte)  # a server holds the parts of all ranks
                seconds |= {f"{count}_servers_s": server_seconds(size, count, alpha, model.frame, byte)
                            for count in SERVERS}
                report(what="simulated", ranks=RANKS, link_gb_per_s=link / 1e9, alpha_us=alpha * 1e6,
                       alpha_and_beta_times=factor, bytes=size, **seconds)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, nargs="+", default=[4, 8], help="ranks of the predicted all-reduces")
    parser.add_argument("--rounds", type=int, default=0, help="operations per turn; 0: as many as in about 0.2 s")
    parser.add_argument("--programs", help="a folder with built programs; by default, builds them in release")
    options = parser.parse_args()
    folder = options.programs
    if not folder:
        subprocess.run(["deploy/dev/bazel.py", "build", "--config=release", *TARGETS], cwd=ROOT, check=True,
                       stdout=subprocess.DEVNULL)
        folder = ROOT / "bazel-bin/tests/bench"
    model = Model(folder, options.rounds)
    began = time.perf_counter()

    def report(**figures):
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        print_report("scale-model", time.perf_counter() - began, usage.ru_utime + usage.ru_stime,
                     usage.ru_maxrss / 1024, **figures)

    for placement, measured in model.fit().items():
        for size, times in measured.items():
            report(what="measured for the fit", ranks=2, placement=placement, bytes=size, measured_s=times.wall,
                   measured_cpu_s=times.cpu)
    report(what="fit", cores=len(model.cores), cache_bytes=model.cache, round_us=model.round * 1e6,
           frame_us=model.frame * 1e6, near_byte_ns=model.near_byte * 1e9, far_byte_ns=model.far_byte * 1e9)
    predictions = misses = 0
    for ranks in options.ranks:
        made, missed = compare(model, ranks, report)
        predictions, misses = predictions + made, misses + missed
    report(what="predictions", predictions=predictions, misses=misses, tolerance=TOLERANCE)
    simulate(model, report)


if __name__ == "__main__":
    main()
