"""Runs the case checkpoint in TensorFlow: saves variables of --bytes bytes, syncs the files, and
restores them. Reports medians. TensorFlow's ops do not sync, so this program does."""

import argparse
import json
import os
import pathlib
import resource
import statistics
import tempfile
import time

import fashion_mnist

VARIABLES = 16
UNITS = {"": 1, "Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30}


def flags():
    parser = argparse.ArgumentParser(description="Saves and restores variables")
    parser.add_argument("--bytes", default="1Gi", help="a number with Ki, Mi or Gi")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", default="/tmp")
    parser.add_argument("--batch", help="ignored: this program does not train")
    return parser.parse_args()


def size_of(text):
    number = text.rstrip("KMGi")
    return int(number) * UNITS[text[len(number):]]


def sync(folder):
    for path in [*folder.iterdir(), folder]:
        descriptor = os.open(path, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)


def main():
    options = flags()
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
    import tensorflow as tf

    floats = size_of(options.bytes) // 4 // VARIABLES
    names = [f"variable_{i}" for i in range(VARIABLES)]
    tensors = [tf.random.uniform([floats], seed=i) for i in range(VARIABLES)]
    slices = [""] * VARIABLES
    save, restore = [], []
    watch = fashion_mnist.Stopwatch()
    for step in range(options.rounds):
        with tempfile.TemporaryDirectory(dir=options.folder) as folder:
            prefix = f"{folder}/model.ckpt-{step}"
            start = time.perf_counter()
            tf.raw_ops.SaveV2(prefix=prefix, tensor_names=names, shape_and_slices=slices, tensors=tensors)
            sync(pathlib.Path(folder))
            save.append(time.perf_counter() - start)
            start = time.perf_counter()
            tf.raw_ops.RestoreV2(prefix=prefix, tensor_names=names, shape_and_slices=slices,
                                 dtypes=[tf.float32] * VARIABLES)
            restore.append(time.perf_counter() - start)
    wall, cpu = watch.elapsed()
    written = floats * 4 * VARIABLES / 1e6
    line = {
        "case": "checkpoint", "peer": "tensorflow", "what": "save and restore", "bytes": floats * 4 * VARIABLES,
        "rounds": options.rounds, "save_mb_per_s": round(written / statistics.median(save), 1),
        "restore_s": round(statistics.median(restore), 4),
        "restore_mb_per_s": round(written / statistics.median(restore), 1),
        "wall_s": round(wall, 5), "cpu_s": round(cpu, 5),
        "peak_rss_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 2),
        "load1": os.getloadavg()[0],
    }
    print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
