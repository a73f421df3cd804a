"""Draws random models, and compares their outputs and a step of SGD with Keras in float64.

run.sh runs it. RANDOM_MODELS is the number of models (default 60; 200 if TFJOB_DEEP is set), and RANDOM_SEED is the
seed of the first model; the following models have the following seeds. To replay one model, set RANDOM_MODELS=1 and the
seed that a failure names."""
import json
import os
import re
import subprocess
import tempfile
import unittest
import warnings

from harness import RUN_SECONDS, TRAINER

import numpy as np
import keras
import tensorflow as tf

import random_models
from interop_test import variables

COUNT = int(os.environ.get("RANDOM_MODELS", "200" if os.environ.get("TFJOB_DEEP") else "60"))
SEED = int(os.environ.get("RANDOM_SEED", "1000"))
EXAMPLES = 4
RATE = 0.1
# Parts of the error messages for models that are listed as rejected in
# docs/guides/coming-from-keras.md, under "What a model may contain".
NOT_SUPPORTED = ["expected a function of each example", "not supported in TimeDistributed", "does not depend on"]


class Refused(Exception):
    """Raised if this project does not support the model."""


def run(*arguments):
    done = subprocess.run([TRAINER, *arguments], capture_output=True, text=True, timeout=RUN_SECONDS)
    if done.returncode != 0:
        raise Refused(f"exit code {done.returncode}: {done.stderr.strip()}")


def in_type(floatx, make):
    """Calls a function with this type as Keras' floatx."""
    before = keras.config.floatx()
    keras.config.set_floatx(floatx)
    keras.config.set_dtype_policy(floatx)
    try:
        return make()
    finally:
        keras.config.set_floatx(before)
        keras.config.set_dtype_policy(before)


def examples(model, rng, length):
    """Returns one array of examples per input. `length` replaces lengths that the model does not
    state."""
    arrays = {}
    for tensor in model.inputs:
        shape = [EXAMPLES] + [dim or length for dim in tensor.shape[1:]]
        if tensor.name.startswith("ids"):
            arrays[tensor.name] = rng.integers(0, 7, shape).astype(tensor.dtype)
        else:
            arrays[tensor.name] = rng.standard_normal(shape).astype("float32")
    return arrays


def listed(value):
    return list(value) if isinstance(value, (list, tuple)) else [value]


class Case:
    """A model with weights and data, in Keras' float32."""

    def __init__(self, seed):
        self.seed = seed
        self.model = random_models.draw(seed)
        self.rng = np.random.default_rng(seed)
        for weight in self.model.weights:
            noise = self.rng.uniform(0, 0.1, weight.shape)
            if "seed_generator" not in weight.path:
                weight.assign(np.asarray(weight) + noise.astype(np.float32))
        self.weights = self.model.get_weights()
        self.arrays, self.outputs = self.first_that_runs(lengths=(7, 6, 5))
        self.labels = [self.rng.random(y.shape, dtype=np.float32) for y in self.outputs]

    def first_that_runs(self, lengths):
        for length in lengths:
            arrays = examples(self.model, self.rng, length)
            try:
                outputs = self.model([arrays[x.name] for x in self.model.inputs], training=False)
                return arrays, [np.asarray(y) for y in listed(outputs)]
            except Exception as error:  # Keras may raise any type of error for lengths that do not fit
                last = error
        raise last

    def keras(self, floatx):
        """Returns the outputs and the variables after a step, computed in this type."""
        def compute():
            model = random_models.draw(self.seed)
            model.set_weights(self.weights)
            inputs = [self.arrays[x.name].astype(x.dtype) for x in model.inputs]
            outputs = [np.asarray(y, np.float64) for y in listed(model(inputs, training=False))]
            if not model.trainable_weights:
                return outputs, {}
            model.compile(optimizer=keras.optimizers.SGD(RATE), loss=["mse"] * len(outputs), run_eagerly=True,
                          auto_scale_loss=False)
            model.train_on_batch(inputs, [y.astype(floatx) for y in self.labels])
            return outputs, {k: np.asarray(v, np.float64) for k, v in variables(model).items()}
        return in_type(floatx, compute)

    def write(self, folder):
        """Writes the model as .keras or, for every other seed, as JSON with separate weights."""
        if self.seed % 2:
            self.model.save(f"{folder}/model.keras")
            self.files = [f"{folder}/model.keras", f"{folder}/model.keras"]
        else:
            with open(f"{folder}/model.json", "w") as file:
                file.write(self.model.to_json())
            self.model.save_weights(f"{folder}/model.weights.h5")
            self.files = [f"{folder}/model.json", f"{folder}/model.weights.h5"]
        np.savez(f"{folder}/in.npz", **self.arrays)

    def predict(self, folder):
        run("predict", "--model", self.files[0], "--weights", self.files[1], "--input", f"{folder}/in.npz",
            "--output", f"{folder}/out.npz", "--batch-size", "3", "--threads", "1")
        with np.load(f"{folder}/out.npz") as arrays:
            return [arrays[name] for name in arrays.files]

    def step(self, folder):
        """Returns the variables after a step of the trainer."""
        single = len(self.outputs) == 1
        names = self.output_names()
        keys = {"model": {"keras_json" if self.files[0].endswith("json") else "file": self.files[0],
                          "weights": self.files[1]},
                "data": {"train": {"format": "npz", "file": f"{folder}/train.npz"}},
                "optimizer": {"name": "sgd", "learning_rate": RATE}, "batch_size": EXAMPLES, "max_steps": 1,
                "model_dir": f"{folder}/run"}
        loss = "mean_squared_error"
        keys |= {"loss": loss} if single else {"outputs": {name: {"loss": loss} for name in names}}
        arrays = dict(self.arrays)
        arrays |= dict(zip(["y"] if single else names, self.labels))
        if len(self.model.inputs) == 1:
            arrays["x"] = arrays.pop(self.model.inputs[0].name)
        np.savez(f"{folder}/train.npz", **arrays)
        with open(f"{folder}/train.yaml", "w") as file:
            json.dump(keys, file)
        run("--config", f"{folder}/train.yaml")
        reader = tf.train.load_checkpoint(f"{folder}/run")
        return {name: reader.get_tensor(name) for name in variables(self.model)}

    def output_names(self):
        counts, names = {}, []
        for tensor in listed(self.model.outputs):
            base = tensor._keras_history.operation.name
            number = counts[base] = counts.get(base, -1) + 1
            names.append(base if number == 0 else f"{base}_{number}")
        return names


def differences(ours, exact, single, bound):
    """Returns the values whose error exceeds both the bound and twice the error of Keras' own
    values in float32. `single` computes Keras' values in float32, and is called only if needed."""
    found, theirs = [], None
    for name, wanted in exact.items():
        got = np.asarray(ours[name], np.float64).reshape(wanted.shape)
        distance, scale = np.abs(got - wanted).max(initial=0), np.abs(wanted).max(initial=0)
        if distance <= bound * scale:
            continue
        theirs = theirs or single()
        own = np.abs(theirs[name].reshape(wanted.shape) - wanted).max(initial=0)
        if not distance <= 2 * own:
            found.append(f"{name}: ours differs by {distance:.3g}, Keras' float32 by {own:.3g}, of {scale:.3g}")
    return found


class RandomModels(unittest.TestCase):
    def check(self, case, folder):
        try:
            exact, after = case.keras("float64")
        except tf.errors.OpError:  # TensorFlow pools volumes only in float32; interop_test.py compares those
            return "skipped: Keras cannot run it in float64"
        if not all(np.isfinite(y).all() and np.abs(y).max(initial=0) < 1e4 for y in [*exact, *after.values()]):
            return "skipped: large or not finite"
        number = lambda outputs: {f"output {i}": y for i, y in enumerate(outputs)}
        case.write(folder)
        ours = number(case.predict(folder))
        self.assertEqual(len(ours), len(exact))
        wrong = differences(ours, number(exact), lambda: number(case.keras("float32")[0]), 1e-5)
        if after and not wrong:
            wrong = differences(case.step(folder), after, lambda: case.keras("float32")[1], 1e-4)
        return "\n".join(wrong)

    def test_outputs_and_a_step_equal_those_of_keras(self):
        warnings.filterwarnings("ignore")
        wrong, refused, skipped = [], [], 0
        for seed in range(SEED, SEED + COUNT):
            try:
                case = Case(seed)
            except Exception:  # Keras creates the model, but cannot run it
                skipped += 1
                continue
            with tempfile.TemporaryDirectory() as folder:
                try:
                    result = self.check(case, folder)
                except Refused as error:
                    refused.append(f"seed {seed}: {error}")
                    continue
            skipped += result.startswith("skipped")
            if result and not result.startswith("skipped"):
                wrong.append(f"seed {seed}: {result}\n{random_models.describe(case.model)}")
        report = f"{COUNT} models from seed {SEED} on: {len(refused)} refused, {skipped} skipped"
        print(report, *refused, sep="\n")
        self.assertEqual(wrong, [], "\n\n".join(wrong))
        unknown = [text for text in refused if not any(row in text for row in NOT_SUPPORTED)]
        self.assertEqual(unknown, [], "refused for no row of the table")
        self.assertLessEqual(len(refused) * 200, 10 * max(COUNT, 200), report)
        self.assertLessEqual(skipped, COUNT // 4, report)
