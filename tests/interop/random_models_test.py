"""Draws random models, and compares their outputs and a step of SGD with Keras in float64.

run.sh runs it. RANDOM_MODELS is the number of models (default 200), and RANDOM_SEED is the
seed of the first model; the following models have the following seeds. To replay one model, set RANDOM_MODELS=1 and the
seed that a failure names."""
import os
import tempfile
import unittest
import warnings

from harness import PREDICTION, STEP, differences, in_type, listed, numbered, with_weights

import numpy as np
import tensorflow as tf

import random_models
from model_case import FORMS, RATE, Case as AnyCase, Refused, run

COUNT = int(os.environ.get("RANDOM_MODELS", "200"))
SEED = int(os.environ.get("RANDOM_SEED", "1000"))
# Parts of the error messages for models that are listed as rejected in
# docs/guides/coming-from-keras.md, under "What a model may contain".
NOT_SUPPORTED = ["expected a function of each example", "not supported in TimeDistributed", "does not depend on",
                 "expected sequences of shape [steps,features]"]


class Case(AnyCase):
    """The random model of a seed."""

    def __init__(self, seed):
        self.seed = seed
        self.model = self.build()
        self.rng = np.random.default_rng(seed)
        for weight in self.model.weights:
            noise = self.rng.uniform(0, 0.1, weight.shape)
            if "seed_generator" not in weight.path:
                weight.assign(np.asarray(weight) + noise.astype(np.float32))
        self.weights = self.model.get_weights()
        with_weights(self.model, self.weights)
        self.arrays, self.outputs = self.first_that_runs(lengths=(7, 6, 5))
        self.labels = [self.rng.random(y.shape, dtype=np.float32) for y in self.outputs]

    def build(self):
        """Returns the model in the type of Keras' floatx, with initial weights."""
        return random_models.draw(self.seed)

    def first_that_runs(self, lengths):
        for length in lengths:
            arrays = self.examples(length)
            try:
                outputs = self.model([arrays[x.name] for x in self.model.inputs], training=False)
                return arrays, [np.asarray(y) for y in listed(outputs)]
            except Exception as error:  # Keras may raise any type of error for lengths that do not fit
                last = error
        raise last


class RandomModels(unittest.TestCase):
    def check(self, case, folder):
        """Returns what is wrong, or "" or a text that starts with "skipped"."""
        try:
            exact, after = case.keras("float64")
        except (tf.errors.InvalidArgumentError, tf.errors.UnimplementedError) as error:
            return f"skipped: Keras cannot train it in float64: {str(error)[:100]!r}"
        if not all(np.isfinite(y).all() and np.abs(y).max(initial=0) < 1e4 for y in [*exact, *after.values()]):
            return "skipped: large or not finite"
        case.write(folder)
        wrong = []
        for form in FORMS:
            ours = numbered(case.predict(folder, form))
            self.assertEqual(len(ours), len(exact))
            wrong += [f"{form}: {text}" for text in differences(
                ours, numbered(exact), lambda: numbered(case.keras("float32")[0]), PREDICTION)]
        for form in FORMS if after and not wrong else ():
            wrong += [f"{form}: {text}" for text in differences(
                case.step(folder, form), after, lambda: case.keras("float32")[1], STEP)]
        return "\n".join(wrong)

    def test_outputs_and_a_step_equal_those_of_keras(self):
        """Models that Keras cannot run, or whose values are too large, are replaced by those of further seeds."""
        warnings.filterwarnings("ignore")
        compared, wrong, refused, skipped, seed = 0, [], [], [], SEED
        while compared + len(refused) < COUNT and len(skipped) <= COUNT // 2:
            seed, drawn = seed + 1, seed
            try:
                case = Case(drawn)
            except Exception as error:  # Keras creates the model, but cannot run it
                skipped.append(f"seed {drawn}: Keras cannot run it: {str(error)[:100]!r}")
                continue
            with tempfile.TemporaryDirectory() as folder:
                try:
                    result = self.check(case, folder)
                except Refused as error:
                    refused.append(f"seed {drawn}: {error}")
                    continue
            if result.startswith("skipped"):
                skipped.append(f"seed {drawn}: {result}")
                continue
            compared += 1
            if result:
                wrong.append(f"seed {drawn}: {result}\n{random_models.describe(case.model)}")
                print(f"seed {drawn}: {result}", flush=True)
        report = (f"{compared} models compared, {len(refused)} refused, {len(wrong)} wrong, of seeds {SEED} to "
                  f"{seed - 1}; {len(skipped)} skipped")
        print(report, *refused, *skipped, sep="\n", flush=True)
        self.assertEqual(wrong, [], "\n\n".join(wrong))
        unknown = [text for text in refused if not any(row in text for row in NOT_SUPPORTED)]
        self.assertEqual(unknown, [], "refused for no row of the table")
        self.assertLessEqual(len(refused), -(-10 * COUNT // 200), report)
        self.assertEqual(compared + len(refused), COUNT, report)
