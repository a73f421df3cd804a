"""Runs interop_tool and tfjob-trainer, whose paths run.sh sets in the environment, and reads event
files with TensorBoard.

Import this module before TensorFlow, because TensorFlow reads its settings from the environment
when it is loaded."""
import json
import os
import subprocess
import tempfile

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import numpy as np
from tensorboard.backend.event_processing import event_accumulator

TOOL = os.environ["INTEROP_TOOL"]
TRAINER = os.environ["INTEROP_TRAINER"]
RUN_SECONDS = 600  # a program may take minutes on a busy machine


def tool(verb, request):
    """Calls interop_tool with a verb and a JSON request. Returns its JSON output."""
    done = subprocess.run([TOOL, verb], input=json.dumps(request), capture_output=True, text=True, timeout=RUN_SECONDS)
    if done.returncode != 0:
        raise AssertionError(f"{verb} failed: {done.stderr}")
    return json.loads(done.stdout)


def train(keys):
    """Runs tfjob-trainer as a single task, with these keys as its training file. Returns its
    log."""
    environment = {name: value for name, value in os.environ.items()
                   if name != "TF_CONFIG" and not name.startswith("TFJOB_")}
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        json.dump(keys, file)
        file.flush()
        done = subprocess.run([TRAINER, f"--config={file.name}"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, timeout=RUN_SECONDS, env=environment)
    if done.returncode != 0:
        raise AssertionError(f"tfjob-trainer ended with {done.returncode}:\n{done.stdout}")
    return done.stdout


def as_json(array):
    return {"dtype": array.dtype.name, "shape": list(array.shape), "values": array.reshape(-1).tolist()}


def as_array(value):
    return np.array(value["values"], dtype=value["dtype"]).reshape(value["shape"])


def graph(folder):
    """Returns the nodes of the graph that TensorBoard finds in a folder, by name."""
    seen = event_accumulator.EventAccumulator(folder)
    seen.Reload()
    return {node.name: node for node in seen.Graph().node}


def scalars(folder):
    """Returns the scalars that TensorBoard finds in a folder: {tag: [(step, value), …]}."""
    seen = event_accumulator.EventAccumulator(folder)
    seen.Reload()
    return {tag: [(event.step, event.value) for event in seen.Scalars(tag)] for tag in seen.Tags()["scalars"]}
