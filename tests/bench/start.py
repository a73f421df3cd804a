#!/usr/bin/env python3
"""start: measures the time from the start of the trainer to the beginning and to the end of its first
step. Trains an MLP (784-512-512-10), and ResNet-50 with batches of 8, on
synthetic data. With --tasks, also starts a group of that many tasks (multi_worker_mirrored) that
trains the MLP, and measures the time from the start of the first program until all tasks have taken
the first step. Compares it with one task's time to the end of its first step, in the same run."""
import argparse
import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import threading
import time

from report import print_report

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/bench/peers"))
from local_cluster import free_addresses
TARGET = "//runtime/cmd:tfjob-trainer"
MLP = """{layers: [InputLayer: {shape: [784]}, Dense: {units: 512, activation: relu},
                 Dense: {units: 512, activation: relu}, Dense: {units: 10, activation: softmax}]}"""
MODELS = {"mlp": MLP, "resnet-50": f"{{keras_json: {ROOT}/deploy/examples/models/resnet-50.json}}"}
CONFIG = """\
model: {model}
loss: sparse_categorical_crossentropy
optimizer: sgd
data: {{train: {{format: synthetic, examples: {examples}}}}}
batch_size: 8
max_steps: 1
log_step_count_steps: 1
"""


GROUP = "threads: 1\nstrategy: {{name: multi_worker_mirrored}}\nmodel_dir: {folder}/model\n"
EXAMPLES = 16  # per task
FIRST_STEP = " step step=1 "


def run(trainer, model):
    """Returns the times until the log reports the start of training, and the end of the first step."""
    with tempfile.TemporaryDirectory() as folder:
        config = pathlib.Path(folder, "training.yaml")
        config.write_text(CONFIG.format(model=model, examples=EXAMPLES))
        began = time.perf_counter()
        process = subprocess.Popen([trainer, f"--config={config}"], stderr=subprocess.PIPE, text=True)
        times = {}
        log = ""
        for line in process.stderr:
            log += line
            for name, message in (("to_first_step_s", " training from_step="), ("to_end_of_step_s", FIRST_STEP)):
                if message in line:
                    times[name] = time.perf_counter() - began
        if process.wait() != 0 or len(times) < 2:
            raise SystemExit(f"{trainer} ended with {process.returncode}:\n{log}")
        return times, time.perf_counter() - began


def await_first_step(process, index, ends):
    """Reads the log of a task to its end. Notes in `ends` when the task has taken the first step."""
    for line in process.stderr:
        if FIRST_STEP in line:
            ends[index] = time.perf_counter()


def run_group(trainer, tasks):
    """Starts a chief and workers. Returns the time from the first start until all tasks have taken
    the first step, and the time until all have ended."""
    with tempfile.TemporaryDirectory() as folder:
        config = pathlib.Path(folder, "training.yaml")
        config.write_text(CONFIG.format(model=MLP, examples=tasks * EXAMPLES) + GROUP.format(folder=folder))
        addresses = free_addresses(tasks)
        cluster = {"chief": addresses[:1], "worker": addresses[1:]}
        began = time.perf_counter()
        processes, threads, ends = [], [], {}
        for kind, index in [("chief", 0), *(("worker", i) for i in range(tasks - 1))]:
            tf_config = json.dumps({"cluster": cluster, "task": {"type": kind, "index": index}})
            process = subprocess.Popen([trainer, f"--config={config}"], stderr=subprocess.PIPE, text=True,
                                       env={**os.environ, "TF_CONFIG": tf_config})
            threads.append(threading.Thread(target=await_first_step, args=(process, len(processes), ends)))
            threads[-1].start()
            processes.append(process)
        for thread in threads:
            thread.join()
        if any(process.wait() != 0 for process in processes) or len(ends) < tasks:
            raise SystemExit(f"expected all tasks to exit with 0, after their first step; exit codes: "
                             f"{[process.returncode for process in processes]}, first steps: {len(ends)}")
        return max(ends.values()) - began, time.perf_counter() - began


def measure(rounds, measured, key):
    """Calls measured() once per round. Returns the result with the least key(result), and the CPU
    seconds per round of all child processes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    results = [measured() for _ in range(rounds)]
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return min(results, key=key), cpu / rounds


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="the fastest one counts")
    parser.add_argument("--tasks", type=int, default=1, help="tasks of the group; 1 for no group")
    parser.add_argument("--models", nargs="+", choices=MODELS, default=list(MODELS))
    parser.add_argument("--trainer", help="a built trainer; by default, builds one in the release configuration")
    options = parser.parse_args()
    trainer = options.trainer
    if not trainer:
        subprocess.run(["deploy/dev/bazel.py", "build", "--config=release", TARGET], cwd=ROOT, check=True,
                       stdout=subprocess.DEVNULL)
        trainer = ROOT / "bazel-bin/runtime/cmd/tfjob-trainer"

    def peak():
        return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024

    alone = None
    for name in options.models:
        (times, wall), cpu = measure(options.rounds, lambda: run(trainer, MODELS[name]),
                                     lambda result: result[0]["to_first_step_s"])
        alone = times["to_end_of_step_s"] if name == "mlp" else alone
        print_report("start", wall, cpu, peak(), model=name, **times)
    if options.tasks > 1:
        if alone is None:
            raise SystemExit("--tasks compares the group with one task of the model mlp; add mlp to --models")
        (first_steps, wall), cpu = measure(options.rounds, lambda: run_group(trainer, options.tasks),
                                           lambda result: result[0])
        cores = len(os.sched_getaffinity(0))
        print_report("start", wall, cpu, peak(), model="mlp", tasks=options.tasks, cores=cores,
                     to_first_step_of_all_s=first_steps, one_task_s=alone,
                     ratio=first_steps / (max(1, options.tasks / cores) * alone))


if __name__ == "__main__":
    main()
