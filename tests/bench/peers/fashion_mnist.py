"""Provides the flags, the data and the JSON line of the cases mlp and cnn for the programs of all
frameworks. Does not depend on any framework."""

import argparse
import gzip
import json
import os
import pathlib
import resource
import subprocess
import sys
import time

CLASSES = 10
WARM_UP_STEPS = 20
LOSS_EXAMPLES = 5000  # number of training examples on which the loss is computed


# The defaults of //tests/bench:mlp and :cnn.
DEFAULTS = {"mlp": {"batch": 128, "optimizer": "sgd", "epochs": 1},
            "cnn": {"batch": 64, "optimizer": "adam", "epochs": 0.16}}
CNN = "28x28-32c5-p2-64c5-p2-1024-10"


def flags(modes, case):
    """Parses the flags of the case, and --mode, which specifies how the framework runs the
    steps."""
    parser = argparse.ArgumentParser(description=f"Trains the model of the case {case} on Fashion-MNIST")
    parser.add_argument("--batch", type=int)
    parser.add_argument("--threads", type=int, default=1)
    if case == "mlp":
        parser.add_argument("--hidden", default="512,512")
    parser.add_argument("--optimizer", choices=("sgd", "adam"))
    parser.add_argument("--epochs", type=float)
    parser.add_argument("--mode", choices=("best", *modes), default="best")
    parser.set_defaults(**DEFAULTS[case])
    options = parser.parse_args()
    options.case = case
    if case == "mlp":
        options.hidden = [int(units) for units in options.hidden.split(",")]
    return options


def load(split):
    """Loads the split "train" or "t10k". Returns images, float32 [n, 784] in 0..1, and labels,
    int32 [n]."""
    import numpy

    folder = pathlib.Path(os.environ.get("FASHION_MNIST_DIR", "/usr/share/datasets/fashion-mnist"))
    images = gzip.decompress((folder / f"{split}-images-idx3-ubyte.gz").read_bytes())[16:]
    labels = gzip.decompress((folder / f"{split}-labels-idx1-ubyte.gz").read_bytes())[8:]
    pixels = numpy.frombuffer(images, numpy.uint8).reshape(-1, 784)
    return pixels.astype(numpy.float32) / 255, numpy.frombuffer(labels, numpy.uint8).astype(numpy.int32)


class Stopwatch:
    def __init__(self):
        self._start = self._now()

    @staticmethod
    def _now():
        usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return time.perf_counter(), sum(usage.ru_utime + usage.ru_stime for usage in usages)

    def elapsed(self):
        return [now - start for now, start in zip(self._now(), self._start)]


def report(peer, options, steps, wall, cpu, peak_kb, loss, accuracy):
    layers = CNN if options.case == "cnn" else "-".join(str(units) for units in (784, *options.hidden, CLASSES))
    samples = steps * options.batch
    line = {
        "case": options.case, "peer": peer, "mode": options.mode, "model": layers, "optimizer": options.optimizer,
        "batch": options.batch, "threads": options.threads, "steps": steps,
        "samples_per_s": round(samples / wall, 1), "samples_per_cpu_s": round(samples / cpu, 1),
        "final_loss": round(float(loss), 6), "test_accuracy": round(float(accuracy), 4),
        "wall_s": round(wall, 5), "cpu_s": round(cpu, 5), "peak_rss_mb": round(peak_kb / 1024, 2),
        "load1": os.getloadavg()[0],
    }
    print(json.dumps(line), flush=True)


def best_of(ways, name="mode", measure="samples_per_cpu_s"):
    """Runs this program once for each way, with `--<name> WAY`, in a separate process. Prints the
    line with the largest value of `measure`, and adds the values of all ways as "tried"."""
    lines = []
    for way in ways:
        done = subprocess.run([sys.executable, *sys.argv, f"--{name}", way], capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{sys.argv[0]} --{name} {way}:\n{done.stderr[-3000:]}")
        lines.append(json.loads(done.stdout.splitlines()[-1]))
    best = max(lines, key=lambda line: line[measure])
    best["tried"] = {line[name]: line[measure] for line in lines}
    print(json.dumps(best), flush=True)
