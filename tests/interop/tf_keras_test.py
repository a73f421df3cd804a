"""Continues training from files of compiled models that tf.keras 2 has written: its optimizers, its
legacy optimizers, and its metrics. run.sh runs it."""
import os
import tempfile
import unittest

from harness import scalars, train
from interop_test import randomize, variables

import numpy as np
import tensorflow as tf
import tf_keras

L, O = tf_keras.layers, tf_keras.optimizers
OLD = O.legacy

OPTIMIZERS = {
    "sgd": lambda: O.SGD(0.1),
    "momentum": lambda: O.SGD(0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
    "adam": lambda: O.Adam(0.02, clipnorm=0.5),
    "amsgrad": lambda: O.Adam(0.02, amsgrad=True, use_ema=True, ema_momentum=0.6),
    "adamw": lambda: O.AdamW(O.schedules.ExponentialDecay(0.05, 3, 0.5), global_clipnorm=0.5),
    "rmsprop": lambda: O.RMSprop(0.01, clipvalue=0.01),
    "centered": lambda: O.RMSprop(0.01, momentum=0.5, centered=True),
    "adamax": lambda: O.Adamax(0.02),
    "adagrad": lambda: O.Adagrad(0.1),
    "adadelta": lambda: O.Adadelta(1.0),
    "ftrl": lambda: O.Ftrl(0.1, l1_regularization_strength=0.001, beta=0.1),
    "lion": lambda: O.Lion(0.01, beta_1=0.8),
}
LEGACY = {
    "sgd": lambda: OLD.SGD(0.1),
    "momentum": lambda: OLD.SGD(0.1, momentum=0.9, nesterov=True, decay=0.1),
    "schedule": lambda: OLD.SGD(O.schedules.CosineDecay(0.1, 10), momentum=0.5),
    "adam": lambda: OLD.Adam(0.02, decay=0.2, clipvalue=0.01),
    "amsgrad": lambda: OLD.Adam(0.02, amsgrad=True, global_clipnorm=0.5),
    "rmsprop": lambda: OLD.RMSprop(0.01, momentum=0.5),
    "centered": lambda: OLD.RMSprop(0.01, momentum=0.5, centered=True),
    "adamax": lambda: OLD.Adamax(0.02),
    "adagrad": lambda: OLD.Adagrad(0.1, clipnorm=0.3),
    "adadelta": lambda: OLD.Adadelta(1.0),
    "ftrl": lambda: OLD.Ftrl(0.1, l1_regularization_strength=0.001, beta=0.1),
}


def network():
    """Returns a model with variables that are not trained."""
    inner = tf_keras.Sequential([tf_keras.Input((4,)), L.Dense(4, activation="tanh", name="deep"),
                                 L.BatchNormalization()], name="inner")
    frozen = L.Dense(4, name="frozen")
    frozen.trainable = False
    return tf_keras.Sequential([tf_keras.Input((3,), name="x"), L.Dense(4, name="first"), inner, frozen,
                                L.Dense(2, name="last")], name="outer")


class TfKeras(unittest.TestCase):
    """tf.keras 2 takes three steps and writes a file. The trainer and tf.keras 2 each take two more."""
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

    def keys(self, steps, run_folder, file):
        return {"model": {"file": file, "weights": file},
                "data": {"train": {"format": "npz", "file": self.path("data.npz")}, "shuffle": False},
                "batch_size": self.COUNT, "max_steps": steps, "model_dir": self.path(run_folder)}

    def fitted(self, make):
        tf_keras.utils.set_random_seed(1)
        model = network()
        randomize(model, np.random.default_rng(6), 0.4)
        model.compile(make(), loss=tf_keras.losses.MeanSquaredError(), loss_weights=[0.5],
                      metrics=["mae", tf_keras.metrics.BinaryAccuracy(threshold=0.25)])
        return self.fit(model, 3)

    def fit(self, model, steps):
        for _ in range(steps):
            model.train_on_batch(self.x, self.y)
        return model

    def assert_continues(self, name, model, file):
        train(self.keys(5, name, file))
        self.fit(model, 2)
        if getattr(model.optimizer, "use_ema", False):  # our run ends by setting the variables to the averages
            model.optimizer.finalize_variable_values(model.trainable_variables)
        reader = tf.train.load_checkpoint(self.path(name))
        self.assertEqual(reader.get_tensor("global_step"), 5)
        for variable, value in variables(model).items():
            np.testing.assert_allclose(reader.get_tensor(variable), value, rtol=0, atol=2e-5,
                                       err_msg=f"{name} {variable}")

    def test_the_next_steps_are_those_of_tf_keras(self):
        for name, make in OPTIMIZERS.items():
            for suffix in ("h5", "keras"):
                with self.subTest(optimizer=name, suffix=suffix):
                    model, file = self.fitted(make), self.path(f"{name}.{suffix}")
                    model.save(file)
                    self.assert_continues(f"{name}-{suffix}", model, file)

    def test_the_next_steps_are_those_of_legacy_optimizers(self):
        for name, make in LEGACY.items():
            with self.subTest(optimizer=name):
                model, file = self.fitted(make), self.path(f"{name}.h5")
                model.save(file)
                self.assert_continues(f"legacy-{name}", model, file)

    def test_what_cannot_be_continued_is_refused(self):
        def error_of(file):
            with self.assertRaises(AssertionError) as raised:
                train(self.keys(5, "refused", file))
            self.assertFalse(os.path.exists(self.path("refused/checkpoint")))
            return str(raised.exception)

        for name, make, reason in (
                ("nadam", O.Nadam, "Nadam of tf.keras 2 has a different momentum schedule"),
                ("legacy", OLD.Nadam, "Nadam of tf.keras 2 has a different momentum schedule"),
                ("rmsprop", OLD.RMSprop, "RMSprop of tf.keras.optimizers.legacy without momentum adds epsilon")):
            file = self.path(f"{name}.h5")
            self.fitted(make).save(file)
            self.assertIn(f"{file}: compile_config.optimizer: {reason}", error_of(file))
        file = self.path("legacy.keras")
        self.fitted(OLD.Adam).save(file)
        self.assertIn(f"{file} has no state of an optimizer; to let the optimizer start afresh, set optimizer.name",
                      error_of(file))
        train({**self.keys(1, "afresh", file), "optimizer": {"name": "adam"}})

    def test_metrics_are_reported_as_tf_keras_reports_them(self):
        """Takes one step from a file that was compiled but not trained."""
        m = tf_keras.metrics
        labels = (self.y > 0).astype(np.float32)
        np.savez(self.path("data.npz"), x=self.x, y=labels)
        for suffix in ("h5", "keras"):
            with self.subTest(suffix=suffix):
                x = tf_keras.Input((3,), name="x")
                model = tf_keras.Model(x, L.Dense(2, activation="sigmoid", name="a")(x))
                model.compile("sgd", loss=tf_keras.losses.BinaryCrossentropy(label_smoothing=0.1),
                              metrics=["mae", "mse", "accuracy", m.AUC(curve="PR", name="pr")])
                file = self.path(f"metrics.{suffix}")
                # Metrics given by name are created by the first step. Its effect on the weights is undone.
                start = model.get_weights()
                model.train_on_batch(self.x, labels)
                model.set_weights(start)
                model.optimizer.iterations.assign(0)
                model.save(file)
                wanted = model.train_on_batch(self.x, labels, return_dict=True)
                train({**self.keys(1, f"metrics-{suffix}", file), "save_summary_steps": 1})
                seen = {tag: points[0][1] for tag, points in scalars(self.path(f"metrics-{suffix}")).items()}
                self.assertLessEqual(set(wanted), set(seen))
                for name in wanted:
                    np.testing.assert_allclose(seen[name], wanted[name], rtol=2e-5, err_msg=name)


if __name__ == "__main__":
    unittest.main()
