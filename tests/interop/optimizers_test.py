"""Compares every option of every optimizer and schedule with Keras in float64, through training files. run.sh runs it.

The gradient of the hinge loss of a linear model does not depend on the weights as long as no example is beyond the
margin. With data of few binary digits, the gradient has no rounding error in any type, so only the optimizers are
compared.

docs/training-file.md determines which options each optimizer and each schedule has; an option without a value in this
file fails the test."""
import json
import os
import re
import tempfile
import unittest

from harness import train

import numpy as np
import keras
import tensorflow as tf

from interop_test import variables
from random_models_test import differences, in_type

DOCS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs")
RNG = np.random.default_rng(23)
EXAMPLES, BATCH, STEPS = 24, 4, 6
X = (RNG.integers(-6, 7, (EXAMPLES, 5)) / 16).astype(np.float32)
Y = RNG.choice([-1, 1], (EXAMPLES, 2)).astype(np.float32)
RATE = 0.05
FAST = {"adadelta": 1.0}  # its steps are small
CLASSES = {"sgd": "SGD", "adagrad": "Adagrad", "adam": "Adam", "rmsprop": "RMSprop", "adamw": "AdamW", "nadam": "Nadam",
           "adamax": "Adamax", "adadelta": "Adadelta", "ftrl": "Ftrl", "lion": "Lion"}

# A value for each option, none of them a default, and other options that it needs to have an effect.
VALUES = {
    "learning_rate": (0.02, {}),
    "momentum": (0.7, {}),
    "nesterov": (True, {"momentum": 0.7}),
    "initial_accumulator_value": (0.4, {}),
    "beta_1": (0.7, {}),
    "beta_2": (0.8, {}),
    "amsgrad": (True, {"beta_2": 0.4}),
    "rho": (0.7, {}),
    "centered": (True, {}),
    "epsilon": (0.02, {}),
    "learning_rate_power": (-0.7, {}),
    "l1_regularization_strength": (0.3, {}),
    "l2_regularization_strength": (0.2, {}),
    "l2_shrinkage_regularization_strength": (0.1, {}),
    "beta": (0.4, {}),
    "weight_decay": (0.3, {}),
    "exclude_from_weight_decay": (["bias"], {"weight_decay": 0.3}),
    "use_ema": (True, {}),
    "ema_momentum": (0.6, {"use_ema": True}),
    "ema_overwrite_frequency": (2, {"use_ema": True, "ema_momentum": 0.6}),
    "gradient_accumulation_steps": (2, {}),
    "clipvalue": (0.05, {}),
    "clipnorm": (0.1, {}),
    "global_clipnorm": (0.1, {}),
}
# Other values for some of the optimizers. A step of Lion depends only on a sign, which beta_1 seldom changes.
OF_OPTIMIZERS = {("lion", "beta_1"): (0.1, {"beta_2": 0.5})}
NOT_OPTIONS = {"name": "the optimizer itself", "lazy": "not an option of Keras; embedding_test.py compares it"}

# The steps of these optimizers hardly depend on the size of the gradients, so clipping may have no effect.
SCALE_FREE = {"lion", "adadelta"}

# The decays are so short that each schedule ends, jumps or restarts within the steps of the test. Each schedule has
# required options, and a value for each of the others.
SCHEDULES = {
    "exponential_decay": {"decay_steps": 3, "decay_rate": 0.7},
    "inverse_time_decay": {"decay_steps": 3, "decay_rate": 0.9},
    "polynomial_decay": {"decay_steps": 3},
    "cosine_decay": {"decay_steps": 3},
    "cosine_decay_restarts": {"first_decay_steps": 2},
    "piecewise_constant_decay": {"boundaries": [1, 3], "values": [0.1, 0.05, 0.02]},
}
OF_SCHEDULES = {
    "decay_steps": (2, {}), "decay_rate": (0.4, {}), "staircase": (True, {}), "end_learning_rate": (0.01, {}),
    "power": (2.0, {}), "cycle": (True, {}), "first_decay_steps": (1, {}), "t_mul": (1.0, {}), "m_mul": (0.6, {}),
    "alpha": (0.2, {}), "warmup_target": (0.2, {"warmup_steps": 2}), "warmup_steps": (3, {"warmup_target": 0.2}),
    "boundaries": ([0, 2], {}), "values": ([0.2, 0.03, 0.1], {}),
}


def options(prefix, names):
    """Returns the pairs of a name and an option for it, according to docs/training-file.md."""
    with open(f"{DOCS}/training-file.md") as page:
        rows = re.findall(rf"^\| `{re.escape(prefix)}(\w+)` \|.*\| (.*) \|$", page.read(), re.MULTILINE)
    pairs = []
    for option, text in rows:
        only = re.search(r"Only with ((?:`\w+`(?:, )?)+)\.", text)
        pairs += [(name, option) for name in (re.findall(r"`(\w+)`", only[1]) if only else names)]
    return pairs


def make_schedule(name, given):
    made = getattr(keras.optimizers.schedules, "".join(word.title() for word in name.split("_")))
    return made(**given) if "values" in given else made(RATE, **given)


def make_optimizer(keys):
    """Returns Keras' optimizer for the keys of a training file."""
    keys = dict(keys)
    name, excluded = keys.pop("name"), keys.pop("exclude_from_weight_decay", None)
    schedule = dict(keys.pop("learning_rate_schedule", {}))
    rate = keys.pop("learning_rate", None)
    if schedule:
        rate = make_schedule(schedule.pop("name"), schedule)
    optimizer = getattr(keras.optimizers, CLASSES[name])(**{"learning_rate": rate, **keys})
    if excluded:
        optimizer.exclude_from_weight_decay(var_names=excluded)
    return optimizer


def build():
    keras.utils.clear_session()
    keras.utils.set_random_seed(5)
    x = keras.Input((5,), name="x")
    small = keras.initializers.RandomUniform(-0.2, 0.2)
    y = keras.layers.Dense(2, kernel_initializer=small, bias_initializer=small, name="linear")(x)
    return keras.Model(x, y, name="model")


class Optimizers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        model = build()
        cls.weights = model.get_weights()
        with open(f"{cls.folder}/model.json", "w") as file:
            file.write(model.to_json())
        model.save_weights(f"{cls.folder}/model.weights.h5")
        np.savez(f"{cls.folder}/train.npz", x=X, y=Y)
        cls.number = 0
        cls.known = {}

    def keras(self, floatx, optimizer):
        """Returns the variables after the steps, in this type."""
        key = floatx, json.dumps(optimizer, sort_keys=True)
        if key not in self.known:
            self.known[key] = in_type(floatx, lambda: self.steps_of_keras(floatx, optimizer))
        return self.known[key]

    def steps_of_keras(self, floatx, optimizer):
        model = build()
        model.set_weights(self.weights)
        made = make_optimizer(optimizer)
        model.compile(made, "hinge", run_eagerly=True, auto_scale_loss=False)
        for step in range(STEPS):
            batch = slice(step * BATCH, (step + 1) * BATCH)
            model.train_on_batch(X[batch].astype(floatx), Y[batch].astype(floatx))
        made.finalize_variable_values(model.trainable_variables)  # as fit() does
        return {name: np.asarray(value, np.float64) for name, value in variables(model).items()}

    def steps_of_trainer(self, optimizer):
        type(self).number += 1
        run = f"{self.folder}/run{self.number}"
        train({"model": {"keras_json": f"{self.folder}/model.json", "weights": f"{self.folder}/model.weights.h5"},
               "loss": "hinge", "optimizer": optimizer, "batch_size": BATCH, "max_steps": STEPS,
               "data": {"train": {"format": "npz", "file": f"{self.folder}/train.npz"}, "shuffle": False},
               "model_dir": run})
        reader = tf.train.load_checkpoint(run)
        return {name: reader.get_tensor(name) for name in self.keras("float64", optimizer)}

    def check(self, optimizer, without=None):
        """Compares the variables. If `without` is given, also checks that Keras' differ from those with it."""
        exact = self.keras("float64", optimizer)
        found = differences(self.steps_of_trainer(optimizer), exact, lambda: self.keras("float32", optimizer), 1e-5)
        self.assertEqual(found, [])
        if without is not None:
            other = self.keras("float64", without)
            self.assertTrue(any(np.abs(other[name] - value).max() > 1e-5 for name, value in exact.items()),
                            "the option has no effect in this test")

    def test_each_optimizer(self):
        for name in CLASSES:
            with self.subTest(optimizer=name):
                self.check({"name": name, "learning_rate": FAST.get(name, RATE)})

    def test_each_option_of_each_optimizer(self):
        pairs = options("optimizer.", list(CLASSES))
        self.assertGreater(len(pairs), 100)
        for name, option in pairs:
            if option in NOT_OPTIONS:
                continue
            with self.subTest(optimizer=name, option=option):
                self.assertIn(option, VALUES, "give it a value in VALUES")
                value, needs = OF_OPTIMIZERS.get((name, option)) or VALUES[option]
                needs = {key: needed for key, needed in needs.items() if (name, key) in pairs}
                base = {"name": name, "learning_rate": FAST.get(name, RATE), **needs}
                without = None if name in SCALE_FREE and "clip" in option else base
                self.check({**base, option: value}, without)

    def test_each_option_of_each_schedule(self):
        pairs = options("optimizer.learning_rate_schedule.", list(SCHEDULES))
        self.assertGreater(len(pairs), 15)
        self.assertEqual({name for name, _ in pairs}, {*SCHEDULES})
        for name, option in pairs:
            if option == "name":
                continue
            with self.subTest(schedule=name, option=option):
                self.assertIn(option, OF_SCHEDULES, "give it a value in OF_SCHEDULES")
                value, needs = OF_SCHEDULES[option]
                base = self.with_schedule(name, SCHEDULES[name])
                self.check(self.with_schedule(name, {**SCHEDULES[name], **needs, option: value}), without=base)

    @staticmethod
    def with_schedule(name, given):
        rate = {} if "values" in given else {"learning_rate": RATE}
        return {"name": "sgd", **rate, "learning_rate_schedule": {"name": name, **given}}
