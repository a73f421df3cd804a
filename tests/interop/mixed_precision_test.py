"""Compares models with the dtype policies mixed_bfloat16 and mixed_float16 with Keras.

run.sh runs it. MIXED_MODELS is the number of random models (default 25; 100 if TFJOB_DEEP is set), and MIXED_SEED is
the seed of the first."""
import json
import os
import tempfile
import unittest
import warnings

from harness import as_json, listed, numbered, tool, train, with_weights

import h5py
import numpy as np
import keras
import tensorflow as tf
import tf_keras

import random_models
from interop_test import values, variables
from model_case import FORMS, RATE, Refused, run
from random_models_test import NOT_SUPPORTED, Case

COUNT = int(os.environ.get("MIXED_MODELS", "100" if os.environ.get("TFJOB_DEEP") else "25"))
SEED = int(os.environ.get("MIXED_SEED", "5000"))
POLICY = "mixed_bfloat16"
EPSILON = 2.0 ** -8  # the relative error of rounding to bfloat16
EPSILON_OF_FLOAT16 = 2.0 ** -11


class MixedCase(Case):
    """A random model whose layers have the policy. Keras creates and runs the model with this
    policy."""

    def in_policy(self, trains):
        """Returns the outputs and the variables after a step, computed by Keras in the policy."""
        model = with_weights(random_models.draw(self.seed), self.weights)
        inputs = [self.arrays[x.name].astype(x.dtype) for x in model.inputs]
        outputs = [np.asarray(y, np.float64) for y in listed(model(inputs, training=False))]
        if not trains or not model.trainable_weights:
            return outputs, {}
        model.compile(optimizer=keras.optimizers.SGD(RATE), loss=["mse"] * len(outputs), run_eagerly=True)
        model.train_on_batch(inputs, self.labels)
        return outputs, {k: np.asarray(v, np.float64) for k, v in variables(model).items()}


def differences(ours, exact, theirs, epsilon):
    """Returns the values whose error exceeds that of Keras' values in the policy by more than a few roundings of the
    result. Keras' error is the reference, because a model may amplify the roundings inside it."""
    found = []
    for name, wanted in exact.items():
        got = np.asarray(ours[name], np.float64).reshape(wanted.shape)
        distance, scale = np.abs(got - wanted).max(initial=0), np.abs(wanted).max(initial=0)
        own = np.abs(theirs[name].reshape(wanted.shape) - wanted).max(initial=0)
        if not distance <= 3 * own + 4 * epsilon * scale:
            found.append(f"{name}: ours differs by {distance:.3g}, Keras' by {own:.3g}, of {scale:.3g}")
    return found


class RandomMixedModels(unittest.TestCase):
    policy, epsilon = POLICY, EPSILON
    trains = True
    count = COUNT

    def setUp(self):
        warnings.filterwarnings("ignore")
        keras.config.set_dtype_policy(self.policy)
        self.addCleanup(keras.config.set_dtype_policy, "float32")

    def check(self, case, folder):
        exact, after = case.keras("float64")
        form = FORMS[case.seed % 2]
        outputs, variables_after = case.in_policy(self.trains)
        arrays = [*exact, *after.values(), *outputs, *variables_after.values()]
        if not all(np.isfinite(y).all() and np.abs(y).max(initial=0) < 1e3 for y in arrays):
            return "skipped: large or not finite"
        case.write(folder)
        wrong = differences(numbered(case.predict(folder, form)), numbered(exact), numbered(outputs), self.epsilon)
        if variables_after and not wrong:
            wrong = differences(case.step(folder, form), after, variables_after, self.epsilon)
        return "\n".join(wrong)

    def test_outputs_and_a_step_are_as_exact_as_those_of_keras(self):
        wrong, refused, skipped = [], [], 0
        for seed in range(SEED, SEED + self.count):
            try:
                case = MixedCase(seed)
            except Exception:  # Keras creates the model, but cannot run it
                skipped += 1
                continue
            with tempfile.TemporaryDirectory() as folder:
                try:
                    result = self.check(case, folder)
                except Refused as error:
                    refused.append(f"seed {seed}: {error}")
                    continue
                except Exception as error:  # Keras cannot run some layers in bfloat16
                    result = f"skipped: {error}"
            skipped += result.startswith("skipped")
            if result and not result.startswith("skipped"):
                wrong.append(f"seed {seed}: {result}\n{random_models.describe(case.model)}")
        report = f"{self.count} {self.policy} models from seed {SEED} on: {len(refused)} refused, {skipped} skipped"
        print(report, *refused, sep="\n")
        self.assertEqual(wrong, [], "\n\n".join(wrong))
        unknown = [text for text in refused if not any(row in text for row in NOT_SUPPORTED)]
        self.assertEqual(unknown, [], "refused for no row of the table")
        self.assertLessEqual(skipped, self.count // 2, report)


class RandomFloat16Models(RandomMixedModels):
    """Compares only predictions, because Keras and the trainer may skip their first steps."""
    policy, epsilon = "mixed_float16", EPSILON_OF_FLOAT16
    trains = False
    count = COUNT // 2


def small(library, policy):
    """Returns a model with a convolution, normalizations and a last layer in float32."""
    layers, own = library.layers, {"dtype": policy}
    shape = {"shape": (8, 8, 2)} if library is keras else {"input_shape": (8, 8, 2)}
    return library.Sequential([
        layers.InputLayer(**shape), layers.Conv2D(4, 3, activation="relu", **own), layers.BatchNormalization(**own),
        layers.MaxPooling2D(2, **own), layers.Flatten(**own), layers.Dense(16, activation="tanh", **own),
        layers.LayerNormalization(**own), layers.Dense(3, dtype="float32")])


class MixedPrecision(unittest.TestCase):
    def setUp(self):
        self.rng = np.random.default_rng(3)

    def request(self, folder, model, x):
        prefix = os.path.join(folder, "weights")
        tool("write-checkpoint", {"prefix": prefix, "tensors": {k: as_json(v) for k, v in variables(model).items()}})
        return {"model": model.to_json(), "prefix": prefix, "inputs": [values(x)]}

    def test_a_small_model_predicts_and_trains_as_in_keras(self):
        for library in (keras, tf_keras):
            with self.subTest(library=library.__name__):
                # Fix the weights, because the bounds below do not hold for all weights.
                library.utils.set_random_seed(7)
                model = small(library, POLICY)
                self.assertEqual(model.layers[0].compute_dtype, "bfloat16")
                x = self.rng.random((6, 8, 8, 2), dtype=np.float32)
                y = self.rng.random((6, 3), dtype=np.float32)
                wanted = np.asarray(model(x), np.float32)
                with tempfile.TemporaryDirectory() as folder:
                    request = self.request(folder, model, x)
                    got = np.float32(tool("predict", request)[0]).reshape(wanted.shape)
                    after = tool("train-step", request | {"labels": [values(y)], "learning_rate": 0.1})
                np.testing.assert_allclose(got, wanted, rtol=0, atol=8 * EPSILON)
                plain = small(library, "float32")
                plain.set_weights(model.get_weights())
                self.assertGreater(np.abs(got - np.asarray(plain(x))).max(), EPSILON / 8, "not computed in float32")
                model.compile(optimizer=library.optimizers.SGD(0.1), loss="mse")
                model.train_on_batch(x, y)
                for name, value in variables(model).items():
                    got = np.float32(after[name]).reshape(value.shape)
                    np.testing.assert_allclose(got, value, rtol=0, atol=4 * EPSILON, err_msg=name)

    def test_the_loss_is_scaled_as_in_keras(self):
        """The first batch overflows at the initial scale. The scale is then halved until it is small enough."""
        keras.utils.set_random_seed(7)  # a gradient near the limit might overflow in only one of the programs
        model = small(keras, "mixed_float16")
        x = self.rng.random((6, 8, 8, 2), dtype=np.float32)
        y = 40 * self.rng.random((6, 3), dtype=np.float32) + 40
        # Keras scales the loss automatically only if the whole model has the policy.
        optimizer = keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(1e-3))
        with tempfile.TemporaryDirectory() as folder:
            model.save(f"{folder}/model.keras")
            model.compile(optimizer=optimizer, loss="mse")
            applied = 0
            for steps in range(1, 100):
                before = float(optimizer.dynamic_scale) if optimizer.built else 32768.0
                model.train_on_batch(x, y)
                applied += float(optimizer.dynamic_scale) >= before
                if applied == 2:
                    break
            np.savez(f"{folder}/train.npz", x=x, y=y)
            train({"model": {"file": f"{folder}/model.keras", "weights": f"{folder}/model.keras"},
                   "data": {"train": {"format": "npz", "file": f"{folder}/train.npz"}, "shuffle": False},
                   "loss": "mean_squared_error", "optimizer": {"name": "sgd", "learning_rate": 1e-3},
                   "batch_size": 6, "max_steps": 2, "model_dir": f"{folder}/run"})
            reader = tf.train.load_checkpoint(f"{folder}/run")
            scale, good_steps = reader.get_tensor("tfjob/loss_scale")
            after = {name: reader.get_tensor(name) for name in variables(model)}
        self.assertGreater(steps, 2, "the loss overflows at first")
        self.assertEqual(scale, float(optimizer.dynamic_scale))
        self.assertEqual(good_steps, int(optimizer.step_counter))
        for name, value in variables(model).items():
            if "moving" in name:
                continue  # Keras also assigns the statistics of skipped batches
            np.testing.assert_allclose(after[name], value, rtol=0, atol=2e-3, err_msg=name)

    def test_training_goes_on_from_a_file_of_a_scaled_model(self):
        """Keras takes steps until one is good, and writes a file. The trainer takes two more steps, and writes a file
        that Keras reads."""
        keras.config.set_dtype_policy("mixed_float16")
        self.addCleanup(keras.config.set_dtype_policy, "float32")
        keras.utils.set_random_seed(7)
        model = small(keras, "mixed_float16")
        x = self.rng.random((6, 8, 8, 2), dtype=np.float32)
        y = 40 * self.rng.random((6, 3), dtype=np.float32) + 40
        for optimizer in (keras.optimizers.Adam(1e-3), keras.optimizers.LossScaleOptimizer(keras.optimizers.Adam(1e-3))):
            model.compile(optimizer, loss="mse")
            self.assertIsInstance(model.optimizer, keras.optimizers.LossScaleOptimizer)
            while not model.optimizer.built or int(model.optimizer.step_counter) < 1:
                model.train_on_batch(x, y)
            self.assertLess(float(model.optimizer.dynamic_scale), 32768, "the loss overflows at first")
            with tempfile.TemporaryDirectory() as folder:
                np.savez(f"{folder}/train.npz", x=x, y=y)
                self.check_continued(folder, model, x, y, "keras")
                self.check_continued(folder, model, x, y, "h5")

    def check_continued(self, folder, model, x, y, suffix):
        start, config = f"{folder}/start.{suffix}", f"{folder}/training.json"
        model.save(start)
        keys = {"model": {"file": start, "weights": start}, "batch_size": 6,
                "data": {"train": {"format": "npz", "file": f"{folder}/train.npz"}, "shuffle": False},
                "max_steps": int(model.optimizer.iterations) + 2, "model_dir": f"{folder}/{suffix}"}
        with open(config, "w") as file:
            json.dump(keys, file)
        run("--config", config)
        run("export", "--model", config, "--to", f"{folder}/ours.keras")
        run("export", "--model", config, "--to", f"{folder}/ours.h5")
        copy = keras.saving.load_model(f"{folder}/ours.keras")
        self.assertIsInstance(copy.optimizer, keras.optimizers.LossScaleOptimizer)
        self.assertIsInstance(keras.saving.load_model(f"{folder}/ours.h5").optimizer, keras.optimizers.LossScaleOptimizer)
        with h5py.File(f"{folder}/ours.h5") as file:
            names = file["optimizer_weights"].attrs["weight_names"]
            again = [np.asarray(file[f"optimizer_weights/{name}"]) for name in names]
        for one, other in zip(copy.optimizer.variables, again, strict=True):
            np.testing.assert_array_equal(np.asarray(one), other, err_msg=one.path)
        wanted = keras.saving.load_model(f"{folder}/start.keras")
        for _ in range(2):
            wanted.train_on_batch(x, y)
        self.assertEqual(int(wanted.optimizer.iterations), keys["max_steps"], "no step was skipped")
        for one, other in zip(copy.optimizer.variables, wanted.optimizer.variables, strict=True):
            scale = float(np.abs(np.asarray(other)).max())
            np.testing.assert_allclose(one, other, rtol=0, atol=5e-3 * scale, err_msg=one.path)
        for name in ("step_counter", "dynamic_scale", "iterations"):
            self.assertEqual(float(getattr(copy.optimizer, name)), float(getattr(wanted.optimizer, name)), name)
        for name, value in variables(wanted).items():
            np.testing.assert_allclose(variables(copy)[name], value, rtol=0, atol=2e-3, err_msg=name)

    def test_keras_reads_the_policies_that_we_write(self):
        with tempfile.TemporaryDirectory() as folder:
            model = small(keras, POLICY)
            model.save(f"{folder}/model.keras")
            run("export", "--model", f"{folder}/model.keras", "--weights", f"{folder}/model.keras", "--to",
                f"{folder}/again.keras")
            again = keras.models.load_model(f"{folder}/again.keras")
        self.assertEqual([layer.dtype_policy.name for layer in again.layers],
                         [layer.dtype_policy.name for layer in model.layers])
