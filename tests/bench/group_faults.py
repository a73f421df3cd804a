#!/usr/bin/env python3
"""group-faults: disturbs a group of three tasks (multi_worker_mirrored) while it trains. Kills a worker,
kills the leader, stops a worker (SIGSTOP), and adds a task to an elastic group. The tasks are
processes on this machine and log every step; all times come from their logs. For each fault, prints

  named_s      from the signal until a survivor's log names the task
  next_step_s  from the signal until a survivor's next step; for the stopped worker, after_lease_s is
               this time minus the lease of 10 s, after which the group gives up a silent task
  steps_lost   how many steps the survivors take again

and for the newcomer, joins_s: from the start of its process to its first step, and how much of their
rate the others lose in that time, and in the 10 s within which it should take part."""
import argparse
import contextlib
import datetime
import json
import os
import pathlib
import re
import resource
import signal
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
LEASE = 10  # seconds
GOAL = 10  # seconds within which a newcomer should take part
STEP = re.compile(r" INFO train step step=(\d+) ")
CONFIG = """\
model: {{layers: [InputLayer: {{shape: [784]}}, Dense: {{units: {units}, activation: relu}},
                  Dense: {{units: 10, activation: softmax}}]}}
loss: sparse_categorical_crossentropy
optimizer: sgd
data: {{train: {{format: synthetic, examples: 12288}}}}
global_batch_size: {batch}
max_steps: 100000000
log_step_count_steps: 1
threads: 1
save_checkpoints_steps: 100000000
strategy: {{name: multi_worker_mirrored, on_failure: shrink{more}}}
model_dir: {folder}/model
"""
ELASTIC = ", min_replicas: 1, max_replicas: 4"
CHIEF, WORKER_0, WORKER_1 = ("chief", 0), ("worker", 0), ("worker", 1)
TIMEOUT = 120  # seconds to wait for a state of the group


def name(task):
    return f"{task[0]} {task[1]}"


class Task:
    """A process of the group. Keeps the lines of its log: the time, the step (None for other lines) and
    the text."""

    def __init__(self, command, environment):
        self.lines = []
        self._grown = threading.Condition()
        self.began = time.time()
        self.process = subprocess.Popen(command, env={**os.environ, **environment}, stderr=subprocess.PIPE, text=True)
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self):
        for text in self.process.stderr:
            try:
                at = datetime.datetime.fromisoformat(text.split(" ", 1)[0].replace("Z", "+00:00")).timestamp()
            except ValueError:
                continue  # not a line of the log
            step = STEP.search(text)
            with self._grown:
                self.lines.append((at, step and int(step[1]), text))
                self._grown.notify_all()
        with self._grown:
            self._grown.notify_all()

    def find(self, wanted, since=0.0):
        """Returns the first line after the time `since` for which wanted(step, text) holds, or None."""
        return next((line for line in list(self.lines) if line[0] >= since and wanted(*line[1:])), None)

    def await_line(self, wanted, since=0.0):
        """Waits for a line as find() returns it."""
        deadline = time.time() + TIMEOUT
        with self._grown:
            while not (found := self.find(wanted, since)):
                if time.time() > deadline or self.process.poll() is not None:
                    log = "".join(text for _, step, text in self.lines if step is None)
                    raise SystemExit(f"a task did not reach the expected state (exit code {self.process.poll()}); "
                                     f"its log without steps:\n{log[-5000:]}")
                self._grown.wait(1)
        return found

    def steps(self, begin, end):
        """Returns the numbers of the steps that the task has logged in this time."""
        return [step for at, step, _ in list(self.lines) if step is not None and begin <= at < end]

    def end(self):
        self.process.kill()
        self.process.wait()
        self._thread.join()


class Group:
    """A group of three tasks, of which the first `starting` are started."""

    def __init__(self, options, trainer, folder, starting=3, more=""):
        self._options, self._trainer, self._folder = options, trainer, folder
        config = pathlib.Path(folder, "training.yaml")
        config.write_text(CONFIG.format(units=options.units, batch=options.batch, more=more, folder=folder))
        self._addresses = dict(zip((CHIEF, WORKER_0, WORKER_1), free_addresses(3)))
        self._listed = list(self._addresses)[:starting]
        self.tasks = {}
        for task in self._listed:
            self.start(task)

    def start(self, task):
        """Starts a task. Its TF_CONFIG lists the tasks that were started before, and this one."""
        if task not in self._listed:
            self._listed.append(task)
        cluster = {}
        for kind, index in self._listed:
            cluster.setdefault(kind, []).append(self._addresses[kind, index])
        tf_config = {"cluster": cluster, "task": {"type": task[0], "index": task[1]}}
        self.tasks[task] = Task([self._trainer, f"--config={self._folder}/training.yaml"],
                                {"TF_CONFIG": json.dumps(tf_config), "TFJOB_UID": "group-faults"})
        return self.tasks[task]

    def await_steps(self):
        """Waits until each task has logged as many steps as a measurement needs."""
        for task in self.tasks.values():
            task.await_line(lambda step, _: step is not None and step >= self._options.steps)

    def end(self):
        for task in self.tasks.values():
            task.end()


@contextlib.contextmanager
def group(options, trainer, **more):
    with tempfile.TemporaryDirectory() as folder:
        made = Group(options, trainer, folder, **more)
        try:
            yield made
        finally:
            made.end()


def report(case, began, **figures):
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    print_report("group-faults", time.time() - began, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024,
                 fault=case, **figures)


def disturb(options, trainer, case, victim, number):
    """Sends the signal `number` to the victim, and follows the survivors until their next step."""
    began = time.time()
    with group(options, trainer) as job:
        job.await_steps()
        survivors = [task for other, task in job.tasks.items() if other != victim]
        job.tasks[victim].process.send_signal(number)
        at = time.time()
        # The step in progress may still end. The next one belongs to another generation of the group.
        again = [task.await_line(lambda _, text: "exchanging with the other tasks" in text, at) for task in survivors]
        next_steps = [task.await_line(lambda step, _: step is not None, line[0])
                      for task, line in zip(survivors, again)]
        named = [task.find(lambda step, text: step is None and name(victim) in text, at) for task in survivors]
        last = max(step for task, line in zip(survivors, again) for step in task.steps(0, line[0]))
    next_step = min(next_steps)
    waited = next_step[0] - at
    figures = {"next_step_s": waited, "steps_lost": max(0, last + 1 - next_step[1])}
    if number == signal.SIGSTOP:
        figures["after_lease_s"] = waited - LEASE
    report(case, began, named_s=min(line[0] for line in named if line) - at, **figures)


def newcomer(options, trainer):
    """Adds a third task to an elastic group of two."""
    began = time.time()
    with group(options, trainer, starting=2, more=ELASTIC) as job:
        job.await_steps()
        others = list(job.tasks.values())
        task = job.start(WORKER_1)
        first = task.await_line(lambda step, _: step is not None)
        joins = first[0] - task.began
        others[0].await_line(lambda step, _: step is not None, task.began + GOAL)
        before = others[0].steps(task.began - options.seconds, task.began)
        during = others[0].steps(task.began, first[0])
        within = others[0].steps(task.began, task.began + GOAL)
        spent = min(options.seconds, task.began - others[0].find(lambda step, _: step is not None)[0])
        lost = max(0, max(before) + 1 - min(during)) if before and during else 0
    rate_before, rate_during = len(before) / spent, len(during) / joins
    report("newcomer", began, joins_s=joins, steps_per_s_before=rate_before, steps_per_s_during=rate_during,
           rate_lost=1 - rate_during / rate_before, rate_lost_in_10_s=1 - len(within) / GOAL / rate_before,
           steps_lost=lost)


def main():
    faults = {"worker killed": lambda *how: disturb(*how, "worker killed", WORKER_1, signal.SIGKILL),
              "leader killed": lambda *how: disturb(*how, "leader killed", CHIEF, signal.SIGKILL),
              "worker stopped": lambda *how: disturb(*how, "worker stopped", WORKER_0, signal.SIGSTOP),
              "newcomer": newcomer}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--faults", nargs="+", choices=faults, default=list(faults))
    parser.add_argument("--units", type=int, default=512, help="units of the hidden layer")
    parser.add_argument("--batch", type=int, default=192, help="examples per step, over all tasks")
    parser.add_argument("--steps", type=int, default=500, help="steps before the fault")
    parser.add_argument("--seconds", type=float, default=5, help="time over which the earlier rate is measured")
    parser.add_argument("--trainer", help="a built trainer; by default, builds one in the release configuration")
    options = parser.parse_args()
    trainer = options.trainer
    if not trainer:
        subprocess.run(["deploy/dev/bazel.py", "build", "--config=release", TARGET], cwd=ROOT, check=True,
                       stdout=subprocess.DEVNULL)
        trainer = ROOT / "bazel-bin/runtime/cmd/tfjob-trainer"
    for fault in options.faults:
        faults[fault](options, trainer)


if __name__ == "__main__":
    main()
