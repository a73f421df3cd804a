"""Provides the flags, the file and the report of the case csv for the programs of all peers."""

import argparse
import contextlib
import json
import os
import random
import resource
import tempfile

import allreduce_case
import fashion_mnist

WRITTEN_AT_ONCE = 8 << 20  # bytes; the rows repeat, so that writing is fast


def flags(ways, description):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--bytes", type=allreduce_case.size, default=1 << 30)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--folder", default="/tmp")
    parser.add_argument("--mode", choices=("best", *ways), default="best")
    return parser.parse_args()


@contextlib.contextmanager
def file(options):
    """Writes the file as tests/bench/csv.cc does, yields its path, and removes it."""
    draw = random.Random(1)
    rows = bytearray()
    while len(rows) < min(WRITTEN_AT_ONCE, options.bytes):
        rows += (",".join(f"{draw.uniform(-10, 10):.6f}" for _ in range(options.columns)) + "\n").encode()
    with tempfile.NamedTemporaryFile(dir=options.folder, suffix=".csv") as output:
        output.write((",".join(f"column_{i}" for i in range(options.columns)) + "\n").encode())
        for written in range(0, options.bytes, len(rows)):
            whole = min(len(rows), options.bytes - written)
            output.write(rows[:rows.rfind(b"\n", 0, whole) + 1])  # whole lines only
        output.flush()
        yield output.name


def measure(peer, options, read):
    """Calls read(path), which reads the file into batches and returns the number of rows. Prints the
    line."""
    with file(options) as path:
        size = os.path.getsize(path)
        watch = fashion_mnist.Stopwatch()
        rows = read(path)
        wall, cpu = watch.elapsed()
    print(json.dumps({
        "case": "csv", "peer": peer, "mode": options.mode, "columns": options.columns, "bytes": size, "rows": rows,
        "rows_per_s": round(rows / wall, 1), "mb_per_s": round(size * 1e-6 / wall, 2),
        "mb_per_cpu_s": round(size * 1e-6 / cpu, 2), "wall_s": round(wall, 5), "cpu_s": round(cpu, 5),
        "peak_rss_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 2),
        "load1": os.getloadavg()[0]}), flush=True)
