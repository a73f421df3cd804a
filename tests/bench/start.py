#!/usr/bin/env python3
"""start: measures how long it takes from the start of the trainer's program to the beginning and to
the end of the first step. Trains an MLP (784-512-512-10), and ResNet-50 with batches of 8, on
synthetic data."""
import argparse
import pathlib
import resource
import subprocess
import tempfile
import time

from report import print_report

ROOT = pathlib.Path(__file__).resolve().parents[2]
TARGET = "//runtime/cmd:tfjob-trainer"
MLP = """{layers: [InputLayer: {shape: [784]}, Dense: {units: 512, activation: relu},
                 Dense: {units: 512, activation: relu}, Dense: {units: 10, activation: softmax}]}"""
MODELS = {"mlp": MLP, "resnet-50": f"{{keras_json: {ROOT}/deploy/examples/models/resnet-50.json}}"}
CONFIG = """\
model: {model}
loss: sparse_categorical_crossentropy
optimizer: sgd
data: {{train: {{format: synthetic, examples: 16}}}}
batch_size: 8
max_steps: 1
log_step_count_steps: 1
"""


def run(trainer, model):
    """Returns the times until the log reports the start of training, and the end of the first step."""
    with tempfile.TemporaryDirectory() as folder:
        config = pathlib.Path(folder, "training.yaml")
        config.write_text(CONFIG.format(model=model))
        began = time.perf_counter()
        process = subprocess.Popen([trainer, f"--config={config}"], stderr=subprocess.PIPE, text=True)
        times = {}
        log = ""
        for line in process.stderr:
            log += line
            for name, message in (("to_first_step_s", " training from_step="), ("to_end_of_step_s", " step step=1 ")):
                if message in line:
                    times[name] = time.perf_counter() - began
        if process.wait() != 0 or len(times) < 2:
            raise SystemExit(f"{trainer} ended with {process.returncode}:\n{log}")
        return times, time.perf_counter() - began


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="the fastest one counts")
    options = parser.parse_args()
    subprocess.run(["deploy/dev/bazel.py", "build", "--config=release", TARGET], cwd=ROOT, check=True,
                   stdout=subprocess.DEVNULL)
    trainer = ROOT / "bazel-bin/runtime/cmd/tfjob-trainer"
    for name, model in MODELS.items():
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        rounds = [run(trainer, model) for _ in range(options.rounds)]
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times, wall = min(rounds, key=lambda result: result[0]["to_first_step_s"])
        cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        print_report("start", wall, cpu / options.rounds, after.ru_maxrss / 1024, model=name, **times)


if __name__ == "__main__":
    main()
