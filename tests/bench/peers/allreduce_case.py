"""Provides the flags and the report of the case allreduce for the programs of all peers."""

import argparse
import json
import os
import re

OPERATIONS = ["all_reduce", "reduce_scatter", "all_gather", "broadcast", "reduce", "all_to_all", "barrier"]
SIZES = [64, 1 << 10, 4 << 10, 32 << 10, 256 << 10, 1 << 20, 8 << 20, 25 << 20, 64 << 20]


def size(text):
    number, unit = re.fullmatch(r"(\d+)\s*([KMG]?)i?B?", text, re.I).groups()
    return int(number) << {"": 0, "K": 10, "M": 20, "G": 30}[unit.upper()]


def parse(description, transports):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--bytes", type=size, nargs="+", default=SIZES)
    parser.add_argument("--rounds", type=int, default=0)
    parser.add_argument("--transport", choices=transports, default="tcp")
    parser.add_argument("--operation", choices=OPERATIONS, default="all_reduce")
    return parser.parse_args()


def has_processors(arguments):
    """Returns whether each rank can have a processor of its own."""
    return arguments.ranks <= len(os.sched_getaffinity(0))


def bind(arguments, rank):
    """Binds this process, and the threads that it starts, to the processor of a rank if there are enough of them."""
    if has_processors(arguments):
        os.sched_setaffinity(0, {sorted(os.sched_getaffinity(0))[rank]})


def bus_factor(arguments):
    """Returns the minimum number of bytes that each rank must send, as a fraction of the
    operation's bytes."""
    ranks = arguments.ranks
    if arguments.operation == "all_reduce":
        return 2 * (ranks - 1) / ranks
    return 1 if arguments.operation in ("broadcast", "reduce") else (ranks - 1) / ranks


def report(arguments, what, bytes_, rounds, seconds, cpu):
    """Prints the line for one size. `cpu` is the CPU time of all ranks in all rounds."""
    print(json.dumps({
        "case": "allreduce", "what": what, "operation": arguments.operation, "transport": arguments.transport,
        "ranks": arguments.ranks, "bytes": bytes_, "bus_bytes_per_s": bus_factor(arguments) * bytes_ / seconds,
        "seconds": seconds, "cpu_seconds_per_gb": cpu / (rounds * bytes_ * arguments.ranks * 1e-9),
        "load1": os.getloadavg()[0]}), flush=True)
