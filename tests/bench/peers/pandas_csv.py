"""Runs the case csv in pandas: reads the whole file ("whole"), or reads it in chunks ("chunks"), and
cuts the values into batches."""

import csv_case
import fashion_mnist
import numpy
import pandas

MODES = ("whole", "chunks")
CHUNK = 1 << 16  # rows


def batches(frame, options):
    """Cuts a frame into batches of features and labels."""
    values = frame.to_numpy(numpy.float32)
    for begin in range(0, len(values), options.batch):
        batch = values[begin:begin + options.batch]
        yield numpy.ascontiguousarray(batch[:, :-1]), numpy.ascontiguousarray(batch[:, -1])


def read(path, options):
    if options.mode == "whole":
        frames = [pandas.read_csv(path, dtype=numpy.float32)]
    else:
        frames = pandas.read_csv(path, dtype=numpy.float32, chunksize=CHUNK)
    return sum(len(features) for frame in frames for features, _ in batches(frame, options))


def main():
    options = csv_case.flags(MODES, __doc__)
    if options.mode == "best":
        fashion_mnist.best_of(MODES, measure="mb_per_cpu_s")
    else:
        csv_case.measure(f"pandas-{pandas.__version__}", options, lambda path: read(path, options))


main()
