"""Tests files with the settings of compile() and the state of the optimizer: the trainer and Keras
each continue training from files that the other has written. run.sh runs it."""
import json
import os
import tempfile
import unittest

from harness import scalars, train
from files_test import run
from interop_test import randomize, variables

import numpy as np
import keras
import tensorflow as tf

L, O = keras.layers, keras.optimizers

OPTIMIZERS = {
    "sgd": lambda: O.SGD(0.1),
    "momentum": lambda: O.SGD(0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
    "adam": lambda: O.Adam(0.02),
    "amsgrad": lambda: O.Adam(0.02, amsgrad=True, use_ema=True, ema_momentum=0.6, gradient_accumulation_steps=2),
    "clipvalue": lambda: O.RMSprop(0.01, clipvalue=0.01, weight_decay=0.05, gradient_accumulation_steps=3),
    "clipnorm": lambda: O.Adam(0.05, clipnorm=0.05, gradient_accumulation_steps=2),
    "global_clipnorm": lambda: O.SGD(0.5, momentum=0.5, global_clipnorm=0.1, gradient_accumulation_steps=2),
    "adamw": lambda: O.AdamW(O.schedules.ExponentialDecay(0.05, 3, 0.5), clipnorm=0.5),
    "rmsprop": lambda: O.RMSprop(0.01, momentum=0.5, centered=True),
    "nadam": lambda: O.Nadam(0.02),
    "adamax": lambda: O.Adamax(0.02),
    "adagrad": lambda: O.Adagrad(0.1),
    "adadelta": lambda: O.Adadelta(1.0),
    "ftrl": lambda: O.Ftrl(0.1, l1_regularization_strength=0.001, beta=0.1),
    "lion": lambda: O.Lion(0.01, beta_1=0.8),
}


def network():
    """Returns a model whose layers are listed in one order and called in another. Some of its variables are not
    trained."""
    inner = keras.Sequential([keras.Input((4,)), L.Dense(4, activation="tanh", name="deep"), L.BatchNormalization()],
                             name="inner")
    frozen = L.Dense(4, name="frozen")
    frozen.trainable = False
    return keras.Sequential([keras.Input((3,), name="x"), L.Dense(4, name="first"), inner, frozen,
                             L.Dense(2, name="last")], name="outer")


class Compiled(unittest.TestCase):
    """One program takes three steps and writes a file; the other program reads the file and takes
    two more steps. The results are compared with those of five steps in Keras alone."""
    COUNT = 8

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        rng = np.random.default_rng(5)
        self.x = rng.standard_normal((self.COUNT, 3)).astype(np.float32)
        self.y = rng.standard_normal((self.COUNT, 2)).astype(np.float32)
        np.savez(self.path("data.npz"), x=self.x, y=self.y)

    def path(self, name):
        return os.path.join(self.folder, name)

    def keys(self, steps, run_folder, **model):
        return {"model": model, "data": {"train": {"format": "npz", "file": self.path("data.npz")}, "shuffle": False},
                "batch_size": self.COUNT, "max_steps": steps, "model_dir": self.path(run_folder)}

    def compiled(self, make):
        keras.utils.set_random_seed(1)
        model = network()
        randomize(model, np.random.default_rng(6), 0.4)
        model.compile(make(), loss=keras.losses.MeanSquaredError(), loss_weights=0.5,
                      metrics=["mae", keras.metrics.BinaryAccuracy(threshold=0.25)])
        return model

    def fit(self, model, steps):
        for _ in range(steps):
            model.train_on_batch(self.x, self.y)
        return model

    def assert_close(self, name, got, wanted):
        self.assertEqual(got.keys(), wanted.keys())
        for variable, value in wanted.items():
            np.testing.assert_allclose(got[variable], value, rtol=0, atol=2e-5, err_msg=f"{name} {variable}")

    def saved(self, run_folder, model):
        reader = tf.train.load_checkpoint(self.path(run_folder))
        return {name: reader.get_tensor(name) for name in variables(model)}

    def test_we_train_on_from_a_file_of_keras(self):
        for name, make in OPTIMIZERS.items():
            for suffix in ("keras", "h5"):
                with self.subTest(optimizer=name, suffix=suffix):
                    model = self.fit(self.compiled(make), 3)
                    file = self.path(f"{name}.{suffix}")
                    model.save(file)
                    train(self.keys(5, f"{name}-{suffix}", file=file, weights=file))
                    if name != "amsgrad":  # our run ends by setting the variables to the averages of use_ema
                        self.fit(model, 2)
                    else:
                        self.fit(model, 2).optimizer.finalize_variable_values(model.trainable_variables)
                    self.assert_close(name, self.saved(f"{name}-{suffix}", model), variables(model))

    def test_keras_trains_on_from_a_file_of_ours(self):
        for name, make in OPTIMIZERS.items():
            with self.subTest(optimizer=name):
                model = self.compiled(make)
                start = self.path(f"{name}.keras")
                model.save(start)
                config = self.path("training.json")
                keys = self.keys(3, f"{name}-run", file=start, weights=start)
                with open(config, "w") as file:
                    json.dump(keys, file)
                run("--config", config)
                if name == "amsgrad":  # like fit(), our run sets the variables to the averages
                    self.fit(model, 3).optimizer.finalize_variable_values(model.trainable_variables)
                    self.fit(model, 2)
                else:
                    self.fit(model, 5)
                file = self.path(f"{name}-ours.keras")
                run("export", "--model", config, "--to", file)
                ours = keras.saving.load_model(file)
                self.assertEqual(ours.optimizer.iterations, 3 // (ours.optimizer.gradient_accumulation_steps or 1))
                self.assert_close(name, variables(self.fit(ours, 2)), variables(model))
                # Keras 3.15 does not restore the optimizer from .h5 files, not even from files that it has written
                # itself.
                older = self.path(f"{name}-ours.h5")
                run("export", "--model", config, "--to", older)
                self.assertIs(type(keras.saving.load_model(older).optimizer), type(ours.optimizer))
                train(self.keys(5, f"{name}-again", file=older, weights=older))
                if name == "amsgrad":
                    model.optimizer.finalize_variable_values(model.trainable_variables)
                self.assert_close(name, self.saved(f"{name}-again", model), variables(model))

    def test_the_training_file_overrides_what_the_file_states(self):
        model = self.fit(self.compiled(lambda: O.Adam(0.02)), 3)
        model.save(self.path("m.keras"))
        keys = self.keys(5, "rate", file=self.path("m.keras"), weights=self.path("m.keras"))
        train({**keys, "optimizer": {"learning_rate": 0.3}})
        model.optimizer.learning_rate = 0.3
        self.assert_close("learning_rate", self.saved("rate", model), variables(self.fit(model, 2)))
        # A schedule that specifies all rates also replaces the rate in the file.
        schedule = {"name": "piecewise_constant_decay", "boundaries": [100], "values": [0.3, 0.1]}
        keys = self.keys(5, "pieces", file=self.path("m.keras"), weights=self.path("m.keras"))
        train({**keys, "optimizer": {"learning_rate_schedule": schedule}})
        self.assert_close("piecewise", self.saved("pieces", model), variables(model))
        fresh = keras.saving.load_model(self.path("m.keras"))
        fresh.compile(O.SGD(0.1), loss="mse")
        keys = self.keys(2, "fresh", file=self.path("m.keras"), weights=self.path("m.keras"))
        train({**keys, "optimizer": {"name": "sgd", "learning_rate": 0.1}, "loss": "mean_squared_error"})
        self.assert_close("fresh", self.saved("fresh", model), variables(self.fit(fresh, 2)))

    def test_metrics_are_reported_as_keras_reports_them(self):
        """Takes one step from a compiled file with sample weights. Compares the names and values of all metrics."""
        m, weights = keras.metrics, np.random.default_rng(8).random(self.COUNT).astype(np.float32)
        x = keras.Input((3,), name="x")
        one = keras.Model(x, L.Dense(2, activation="sigmoid", name="a")(x))
        two = keras.Model(x, [L.Dense(2, activation="sigmoid", name="a")(x), L.Dense(1, name="b")(x)])
        labels = (self.y > 0).astype(np.float32)
        np.savez(self.path("data.npz"), x=self.x, y=labels, a=labels, b=self.y[:, :1], w=weights)
        # Each list gets new objects. If an object were in both lists, it would mix the plain and the weighted values,
        # even after it is read from a file (shared_object_id).
        for name, model, y, listed in [
                ("one", one, labels, lambda:
                 ["mae", m.AUC(curve="PR", name="pr"), m.LogCoshError(), m.AUC(name="pr"), "acc"]),
                ("two", two, [labels, self.y[:, :1]], lambda:
                 [["mae", m.Recall(name="r")], [m.RootMeanSquaredError()]])]:
            for same in (True, False):  # True: also list the metrics as unweighted
                with self.subTest(model=name, same=same):
                    loss = "mse" if name == "one" else ["mse", "mae"]
                    model.compile(O.SGD(0.5), loss=loss, metrics=listed() if same else None, weighted_metrics=listed())
                    file, run_folder = self.path(f"{name}.keras"), f"{name}-{same}"
                    model.save(file)
                    train({**self.keys(1, run_folder, file=file, weights=file), "save_summary_steps": 1,
                           "data": {"train": {"format": "npz", "file": self.path("data.npz"), "sample_weights": "w"},
                                    "shuffle": False}})
                    seen = {tag: points[0][1] for tag, points in scalars(self.path(run_folder)).items()}
                    copy = keras.saving.load_model(file)
                    wanted = copy.train_on_batch(self.x, y, sample_weight=weights if name == "one" else [weights] * 2,
                                                 return_dict=True)
                    self.assertLessEqual(set(wanted), set(seen))
                    for tag, value in wanted.items():
                        np.testing.assert_allclose(seen[tag], value, rtol=1e-4, atol=1e-5, err_msg=tag)
                    self.assertLessEqual(set(seen) - set(wanted), {"global_step/sec", "staleness"})

    def test_several_outputs_keep_their_settings(self):
        x = keras.Input((3,), name="x")
        model = keras.Model(x, [L.Dense(2, name="a")(x), L.Dense(3, activation="softmax", name="b")(x)], name="two")
        classes = np.arange(self.COUNT) % 3
        np.savez(self.path("two.npz"), x=self.x, a=self.y, b=classes)
        keys = {**self.keys(3, "two", file=self.path("two.keras"), weights=self.path("two.keras")),
                "data": {"train": {"format": "npz", "file": self.path("two.npz")}, "shuffle": False}}
        for loss, weights, metrics in [
                (["mse", "sparse_categorical_crossentropy"], [0.5, 2.0], [["mae"], ["accuracy"]]),
                ({"a": keras.losses.MeanAbsoluteError(), "b": "sparse_categorical_crossentropy"}, {"a": 2.0, "b": 1.0},
                 {"a": ["mse"], "b": ["accuracy"]})]:
            model.compile(O.Adam(0.05), loss=loss, loss_weights=weights, metrics=metrics)
            for _ in range(2):
                model.train_on_batch(self.x, [self.y, classes])
            model.save(self.path("two.keras"))
            with open(self.path("two.json"), "w") as file:
                json.dump({**keys, "model_dir": self.path(f"two-{len(os.listdir(self.folder))}")}, file)
            run("--config", self.path("two.json"))
            run("export", "--model", self.path("two.json"), "--to", self.path("ours.keras"))
            ours = keras.saving.load_model(self.path("ours.keras"))
            for _ in range(2):
                wanted = model.train_on_batch(self.x, [self.y, classes], return_dict=True)
            got = ours.train_on_batch(self.x, [self.y, classes], return_dict=True)
            self.assertEqual(got["b_accuracy"], wanted["b_accuracy"])
            np.testing.assert_allclose(got["loss"], wanted["loss"], rtol=1e-5)
            self.assert_close("two", variables(ours), variables(model))
