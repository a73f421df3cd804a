#!/usr/bin/env python3
"""tables: trains a table with Adagrad on parameter servers, saves it, and restores it in a second
run, which continues the training. Reports the peak memory of each kind of task; fails if the chief
or a worker needs more than --at-most-mb. The tasks are processes on this machine.

With --wire, instead reports how many bytes a step sends, compared with the size of the rows that it
touches. These are all bytes of the loopback device, so no other program may use it meanwhile. Trains
twice, with different numbers of steps and without checkpoints, and divides the
additional bytes by the additional steps."""
import argparse
import json
import os
import pathlib
import random
import struct
import subprocess
import sys
import tempfile
import time
import zipfile

from report import print_report

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/bench/peers"))
from local_cluster import free_addresses
TARGET = "//runtime/cmd:tfjob-trainer"
COLUMNS = 64
EXAMPLES, LENGTH, BATCH = 4096, 8, 64
CONFIG = """\
model: {{layers: [{{Embedding: {{input_dim: {rows}, output_dim: {columns}}}}}, Flatten, {{Dense: {{units: 1}}}}]}}
loss: mean_squared_error
optimizer: {{name: adagrad, learning_rate: 0.1}}
data: {{train: {{format: npz, file: {folder}/train.npz}}}}
batch_size: {batch}
threads: 1
strategy: {{mode: {mode}}}
max_steps: {steps}
"""
CHECKPOINTS = "save_checkpoints_steps: {save_every}\nmodel_dir: {folder}/model\n"


def npy(dtype, shape, values):
    """Returns an array as a file in NumPy's format."""
    header = str({"descr": "<" + dtype, "fortran_order": False, "shape": shape})
    header += " " * (-(len(header) + 11) % 64) + "\n"
    letter = {"i4": "i", "f4": "f"}[dtype]
    return (b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode()
            + struct.pack(f"<{len(values)}{letter}", *values))


def write_examples(path, rows):
    draw = random.Random(1)
    with zipfile.ZipFile(path, "w") as archive:
        ids = [draw.randrange(rows) for _ in range(EXAMPLES * LENGTH)]
        archive.writestr("x.npy", npy("i4", (EXAMPLES, LENGTH), ids))
        archive.writestr("y.npy", npy("f4", (EXAMPLES,), [draw.random() for _ in range(EXAMPLES)]))


def run(trainer, config, attempt, options, log):
    """Runs a job to completion. `attempt` must differ for each run with the same model_dir, because
    each run records there that its attempt is over. Returns the seconds, the CPU seconds, and the
    peak memory in MB by kind of task: that of the chief, and those of the worker and the server
    that need the most memory."""
    counts = {"chief": 1, "worker": options.workers, "ps": options.servers}
    addresses = free_addresses(sum(counts.values()))
    cluster = {kind: [addresses.pop() for _ in range(count)] for kind, count in counts.items()}
    began = time.perf_counter()
    processes = {}
    for kind, count in counts.items():
        for index in range(count):
            tf_config = json.dumps({"cluster": cluster, "task": {"type": kind, "index": index}})
            process = subprocess.Popen([trainer, f"--config={config}"], stdout=log, stderr=log,
                                       env={**os.environ, "TF_CONFIG": tf_config, "TFJOB_ATTEMPT": str(attempt)})
            processes[process.pid] = kind
    peaks, cpu, failed = dict.fromkeys(counts, 0.0), 0.0, []
    while processes:
        pid, status, usage = os.wait4(-1, 0)
        kind = processes.pop(pid)
        peaks[kind] = max(peaks[kind], usage.ru_maxrss / 1024)
        cpu += usage.ru_utime + usage.ru_stime
        if status != 0:
            failed.append(f"{kind}: {os.waitstatus_to_exitcode(status)}")
    if failed:
        log.seek(0)
        raise SystemExit(f"tasks failed ({', '.join(failed)}):\n{log.read()[-5000:]}")
    return time.perf_counter() - began, cpu, peaks


def config_of(options, rows, folder, steps, save_every=None):
    """Writes the training file, and returns its path. Without `save_every`, the run saves nothing."""
    config = pathlib.Path(folder, "training.yaml")
    text = CONFIG.format(rows=rows, columns=COLUMNS, folder=folder, mode=options.mode, steps=steps, batch=BATCH)
    if save_every:
        text += CHECKPOINTS.format(save_every=save_every, folder=folder)
    config.write_text(text)
    return config


def loopback_bytes():
    """Returns the number of bytes that the loopback device has sent."""
    for line in pathlib.Path("/proc/net/dev").read_text().splitlines():
        name, _, fields = line.partition(":")
        if name.strip() == "lo":
            return int(fields.split()[8])
    raise SystemExit("/proc/net/dev: expected a device lo")


def measure_wire(trainer, options, rows, folder, log):
    sent, wall, cpu, peaks = [], 0, 0, {}
    for number, steps in enumerate((options.steps, 3 * options.steps), 1):
        before = loopback_bytes()
        seconds, used, peaks = run(trainer, config_of(options, rows, folder, steps), number, options, log)
        sent.append(loopback_bytes() - before)
        wall, cpu = wall + seconds, cpu + used
    tasks = options.workers + 1  # the chief trains, too
    # Each task receives the values of the rows and sends their gradients. A step of the mode async is
    # that of one task.
    touched = 2 * BATCH * LENGTH * COLUMNS * 4 * (tasks if options.mode == "sync" else 1)
    per_step = (sent[1] - sent[0]) / (2 * options.steps)
    print_report("tables", wall, cpu, max(peaks.values()), phase="wire", gib=options.gib, mode=options.mode,
                 servers=options.servers, workers=options.workers, wire_bytes=per_step, touched_bytes=touched,
                 ratio=per_step / touched)


def measure_memory(trainer, options, rows, folder, log):
    """Returns the peak memory of the chief or the worker, whichever is larger, in MB."""
    worst = 0.0
    for number, phase in enumerate(["train and save", "restore, train and save"], 1):
        config = config_of(options, rows, folder, number * options.steps, max(1, options.steps // 2))
        wall, cpu, peaks = run(trainer, config, number, options, log)
        if not pathlib.Path(folder, "model", f"model.ckpt-{number * options.steps}.index").exists():
            raise SystemExit(f"the run '{phase}' has not saved step {number * options.steps}")
        worst = max(worst, peaks["chief"], peaks["worker"])
        print_report("tables", wall, cpu, max(peaks.values()), phase=phase, gib=options.gib, mode=options.mode,
                     servers=options.servers, workers=options.workers, chief_mb=peaks["chief"],
                     worker_mb=peaks["worker"], ps_mb=peaks["ps"])
    return worst


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gib", type=float, default=2, help="size of the table's values")
    parser.add_argument("--servers", type=int, default=4)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--steps", type=int, default=100, help="of each run")
    parser.add_argument("--mode", choices=["sync", "async"], default="sync")
    parser.add_argument("--at-most-mb", type=float, default=512)
    parser.add_argument("--wire", action="store_true", help="measure the bytes of a step instead")
    parser.add_argument("--trainer", help="a program that is built; by default, builds the release configuration")
    options = parser.parse_args()
    trainer = options.trainer
    if not trainer:
        subprocess.run(["deploy/dev/bazel.py", "build", "--config=release", TARGET], cwd=ROOT, check=True,
                       stdout=subprocess.DEVNULL)
        trainer = ROOT / "bazel-bin/runtime/cmd/tfjob-trainer"
    rows = int(options.gib * 2**30) // (COLUMNS * 4)
    with tempfile.TemporaryDirectory() as folder, open(pathlib.Path(folder, "log"), "w+") as log:
        write_examples(pathlib.Path(folder, "train.npz"), rows)
        if options.wire:
            measure_wire(trainer, options, rows, folder, log)
            return
        worst = measure_memory(trainer, options, rows, folder, log)
    if worst > options.at_most_mb:
        raise SystemExit(f"the chief or a worker needed {worst:.0f} MB; at most {options.at_most_mb:.0f} are allowed")


if __name__ == "__main__":
    main()
