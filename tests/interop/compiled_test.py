"""Tests files with the settings of compile() and the state of the optimizer: the trainer and Keras
each continue training from files that the other has written. run.sh runs it."""
import json
import os
import tempfile
import unittest

from harness import check_exact, in_type, scalars, train
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
    inner = keras.Sequential([keras.Input((4,)), L.Dense(4, activation="tanh", name="deep"),
                              L.BatchNormalization(name="normalization")],
                             name="inner")
    frozen = L.Dense(4, name="frozen")
    frozen.trainable = False
    return keras.Sequential([keras.Input((3,), name="x"), L.Dense(4, name="first"), inner, frozen,
                             L.Dense(2, name="last")], name="outer")


def towers():
    x = keras.Input((3,), name="x")
    return keras.Model(x, [L.Dense(2, name="a")(x), L.Dense(3, activation="softmax", name="b")(x)], name="two")


def randomized(model):
    randomize(model, np.random.default_rng(6), 0.4)
    return model


def averaged(model):
    """Sets the variables to the averages of use_ema, as fit() and the trainer do at the end."""
    model.optimizer.finalize_variable_values(model.trainable_variables)
    return model


class Compiled(unittest.TestCase):
    """One program takes three steps and writes a file; the other program reads the file and takes
    two more steps. Compares the results with those of five steps in Keras alone, in float64, within
    BOUND."""
    COUNT = 8
    BOUND = 2e-5  # relative to the largest value of a variable, after five steps

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
        """Returns a compiled model in the type of Keras' floatx. Its weights are equal in each type."""
        keras.utils.set_random_seed(1)
        weights = in_type("float32", lambda: randomized(network()).get_weights())
        model = network()
        model.set_weights(weights)
        m = keras.metrics
        model.compile(make(), loss=keras.losses.MeanSquaredError(), loss_weights=0.5,
                      metrics=["mae", m.BinaryAccuracy(threshold=0.25), m.F1Score(average="micro", threshold=0.5),
                               m.FBetaScore(average="macro", beta=2.0), m.PrecisionAtRecall(0.5), m.PearsonCorrelation(),
                               m.OneHotIoU(2, [1]), m.OneHotMeanIoU(2), m.BinaryIoU([1], threshold=0.25)])
        return model

    def fit(self, model, steps):
        model.run_eagerly = True  # compiling a graph takes longer than a few steps
        for _ in range(steps):
            model.train_on_batch(self.x, self.y)
        return model

    def check(self, name, got, fitted):
        """Compares variables with those of the model that `fitted` returns in the type of Keras' floatx."""
        after = lambda: {name: np.float64(value) for name, value in variables(fitted()).items()}
        check_exact(self, got, in_type("float64", after), after, self.BOUND, name)

    def saved(self, run_folder, model):
        reader = tf.train.load_checkpoint(self.path(run_folder))
        return {name: reader.get_tensor(name) for name in variables(model)}

    def test_we_train_on_from_a_file_of_keras(self):
        for name, make in OPTIMIZERS.items():
            ends = averaged if name == "amsgrad" else lambda model: model
            fitted = lambda: ends(self.fit(self.compiled(make), 5))
            model = self.fit(self.compiled(make), 3)
            for suffix in ("keras", "h5"):
                with self.subTest(optimizer=name, suffix=suffix):
                    file = self.path(f"{name}.{suffix}")
                    model.save(file)
                    train(self.keys(5, f"{name}-{suffix}", file=file, weights=file))
                    self.check(name, self.saved(f"{name}-{suffix}", model), fitted)

    def test_keras_trains_on_from_a_file_of_ours(self):
        for name, make in OPTIMIZERS.items():
            ends = averaged if name == "amsgrad" else lambda model: model
            fitted = lambda: self.fit(ends(self.fit(self.compiled(make), 3)), 2)
            with self.subTest(optimizer=name):
                model = self.compiled(make)
                start = self.path(f"{name}.keras")
                model.save(start)
                config = self.path("training.json")
                keys = self.keys(3, f"{name}-run", file=start, weights=start)
                with open(config, "w") as file:
                    json.dump(keys, file)
                run("--config", config)
                file = self.path(f"{name}-ours.keras")
                run("export", "--model", config, "--to", file)
                ours = keras.saving.load_model(file)
                self.assertEqual(ours.optimizer.iterations, 3 // (ours.optimizer.gradient_accumulation_steps or 1))
                self.check(name, variables(self.fit(ours, 2)), fitted)
                # Keras 3.15 does not restore the optimizer from .h5 files, not even from files that it has written
                # itself.
                older = self.path(f"{name}-ours.h5")
                run("export", "--model", config, "--to", older)
                self.assertIs(type(keras.saving.load_model(older).optimizer), type(ours.optimizer))
                train(self.keys(5, f"{name}-again", file=older, weights=older))
                self.check(name, self.saved(f"{name}-again", model), lambda: ends(fitted()))

    def test_the_training_file_overrides_what_the_file_states(self):
        def fitted():
            return self.fit(self.compiled(lambda: O.Adam(0.02)), 3)

        def with_rate():
            model = fitted()
            model.optimizer.learning_rate = 0.3
            return self.fit(model, 2)

        def fresh():
            model = fitted()
            model.compile(O.SGD(0.1), loss="mse")
            return self.fit(model, 2)

        model = fitted()
        model.save(self.path("m.keras"))
        keys = self.keys(5, "rate", file=self.path("m.keras"), weights=self.path("m.keras"))
        train({**keys, "optimizer": {"learning_rate": 0.3}})
        self.check("learning_rate", self.saved("rate", model), with_rate)
        # A schedule that specifies all rates also replaces the rate in the file.
        schedule = {"name": "piecewise_constant_decay", "boundaries": [100], "values": [0.3, 0.1]}
        keys = self.keys(5, "pieces", file=self.path("m.keras"), weights=self.path("m.keras"))
        train({**keys, "optimizer": {"learning_rate_schedule": schedule}})
        self.check("piecewise", self.saved("pieces", model), with_rate)
        keys = self.keys(2, "fresh", file=self.path("m.keras"), weights=self.path("m.keras"))
        train({**keys, "optimizer": {"name": "sgd", "learning_rate": 0.1}, "loss": "mean_squared_error"})
        self.check("fresh", self.saved("fresh", model), fresh)

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
                 ["mae", m.AUC(curve="PR", name="pr"), m.LogCoshError(), m.AUC(name="pr"), "acc",
                  m.F1Score(average="macro", threshold=0.5), m.SensitivityAtSpecificity(0.5), m.OneHotMeanIoU(2),
                  "concordance_correlation"]),
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
        classes = np.arange(self.COUNT) % 3
        np.savez(self.path("two.npz"), x=self.x, a=self.y, b=classes)
        keys = {**self.keys(3, "two", file=self.path("two.keras"), weights=self.path("two.keras")),
                "data": {"train": {"format": "npz", "file": self.path("two.npz")}, "shuffle": False}}
        weights = towers().get_weights()
        for losses, loss_weights, metrics in [
                (lambda: ["mse", "sparse_categorical_crossentropy"], [0.5, 2.0], [["mae"], ["accuracy"]]),
                (lambda: {"a": keras.losses.MeanAbsoluteError(), "b": "sparse_categorical_crossentropy"},
                 {"a": 2.0, "b": 1.0}, {"a": ["mse"], "b": ["accuracy"]})]:
            def fitted(steps):
                model = towers()
                model.set_weights(weights)
                model.compile(O.Adam(0.05), loss=losses(), loss_weights=loss_weights, metrics=metrics)
                model.run_eagerly = True
                for _ in range(steps):
                    model.last = model.train_on_batch(self.x, [self.y, classes], return_dict=True)
                return model

            fitted(2).save(self.path("two.keras"))
            with open(self.path("two.json"), "w") as file:
                json.dump({**keys, "model_dir": self.path(f"two-{len(os.listdir(self.folder))}")}, file)
            run("--config", self.path("two.json"))
            run("export", "--model", self.path("two.json"), "--to", self.path("ours.keras"))
            ours, wanted = keras.saving.load_model(self.path("ours.keras")), fitted(4)
            got = ours.train_on_batch(self.x, [self.y, classes], return_dict=True)
            self.assertEqual(got["b_accuracy"], wanted.last["b_accuracy"])
            np.testing.assert_allclose(got["loss"], wanted.last["loss"], rtol=1e-5)
            self.check("two", variables(ours), lambda: fitted(4))
