"""Provides the flags, the measurement and the JSON line of the cases encoder, lstm and resnet-50 for
the programs of all frameworks. Does not depend on any framework."""

import argparse
import json
import os
import pathlib
import resource

import fashion_mnist

ROOT = pathlib.Path(__file__).resolve().parents[3]
WARM_UP_STEPS = 3
# The defaults of //tests/bench:NAME: the model's file, the batch size and the shape of an example.
CASES = {"encoder": ("tests/bench/models/encoder.json", 8, (128, 512)),
         "lstm": ("tests/bench/models/lstm.json", 32, (64, 256)),
         "resnet-50": ("deploy/examples/models/resnet-50.json", 8, (224, 224, 3))}


def flags(modes, case):
    parser = argparse.ArgumentParser(description=f"Computes the gradients of the model of the case {case}")
    parser.add_argument("--batch", type=int, default=CASES[case][1])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--mode", choices=("best", *modes), default="best")
    options = parser.parse_args()
    options.case = case
    return options


def noise(options):
    """Returns a batch of inputs, float32."""
    import numpy

    shape = (options.batch, *CASES[options.case][2])
    return numpy.random.default_rng(1).standard_normal(shape, numpy.float32)


def resident_mb():
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) / 1024


def measure(peer, options, step):
    """Runs step(), which returns the loss, for options.seconds, and prints the line. Its `step_mb` is
    how much the process has grown, at its peak, since before the first step."""
    before_mb = resident_mb()
    for _ in range(WARM_UP_STEPS):
        loss = step()
    watch = fashion_mnist.Stopwatch()
    steps = 0
    while steps == 0 or watch.elapsed()[0] < options.seconds:
        loss = step()
        steps += 1
    wall, cpu = watch.elapsed()
    samples = steps * options.batch
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    line = {
        "case": options.case, "peer": peer, "mode": options.mode, "batch": options.batch,
        "threads": options.threads, "steps": steps, "samples_per_s": round(samples / wall, 2),
        "samples_per_cpu_s": round(samples / cpu, 2), "step_ms": round(1e3 * wall / steps, 2),
        "loss": float(loss), "wall_s": round(wall, 5), "cpu_s": round(cpu, 5),
        "step_mb": round(peak_mb - before_mb, 2), "peak_rss_mb": round(peak_mb, 2),
        "load1": os.getloadavg()[0],
    }
    print(json.dumps(line), flush=True)
