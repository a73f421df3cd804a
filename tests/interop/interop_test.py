"""Compares our file formats and arithmetic with TensorFlow, Keras and TensorBoard.

run.sh runs it. trainer_test.py tests the files that the trainer writes."""
import os
import tempfile
import unittest

from harness import as_array, as_json, scalars, tool

import numpy as np
import tensorflow as tf
import keras
import tf_keras


def sample_tensors():
    rng = np.random.default_rng(7)
    return {
        "dense/kernel": rng.standard_normal((37, 19)).astype(np.float32),
        "dense/kernel/Adam": rng.standard_normal((37, 19)).astype(np.float32),
        "dense/bias": rng.standard_normal(19).astype(np.float64),
        "global_step": np.array(12345678901, dtype=np.int64),
        "counts": np.arange(6, dtype=np.int32).reshape(1, 2, 3),
        "pixels": np.arange(256, dtype=np.uint8),
        "flags": np.array([True, False, True]),
        "empty": np.zeros((0, 4), dtype=np.float32),
    }


class Checkpoints(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.prefix = os.path.join(self.folder.name, "model.ckpt-1")

    def test_tensorflow_loads_ours_with_equal_bytes(self):
        tensors = sample_tensors()
        tool("write-checkpoint", {"prefix": self.prefix, "tensors": {k: as_json(v) for k, v in tensors.items()}})
        reader = tf.train.load_checkpoint(self.prefix)
        self.assertEqual(sorted(reader.get_variable_to_shape_map()), sorted(tensors))
        for name, expected in tensors.items():
            got = np.asarray(reader.get_tensor(name))
            self.assertEqual(got.dtype, expected.dtype, name)
            self.assertEqual(got.shape, expected.shape, name)
            self.assertEqual(got.tobytes(), expected.tobytes(), name)

    def test_we_load_what_tensorflow_wrote_by_name(self):
        tensors = sample_tensors()
        with tf.Graph().as_default(), tf.compat.v1.Session() as session:
            variables = [tf.compat.v1.get_variable(n, initializer=v, use_resource=True) for n, v in tensors.items()]
            session.run(tf.compat.v1.global_variables_initializer())
            prefix = tf.compat.v1.train.Saver(variables).save(session, self.prefix, write_meta_graph=False)
        self.check(prefix, tensors)

    def test_we_load_what_tensorflow_2_wrote_by_object(self):
        tensors = sample_tensors()
        checkpoint = tf.train.Checkpoint(**{n.replace("/", "_"): tf.Variable(v) for n, v in tensors.items()})
        prefix = checkpoint.write(self.prefix)
        names = {n.replace("/", "_") + "/.ATTRIBUTES/VARIABLE_VALUE": v for n, v in tensors.items()}
        self.check(prefix, names)

    def check(self, prefix, tensors):
        read = tool("read-checkpoint", {"prefix": prefix})
        for name, expected in tensors.items():
            self.assertNotIn("error", read[name], name)
            got = as_array(read[name])
            self.assertEqual(got.dtype, expected.dtype, name)
            self.assertEqual(got.tobytes(), expected.tobytes(), name)

    def test_equal_tensors_give_byte_equal_files(self):
        tensors = dict(sorted(sample_tensors().items()))
        tool("write-checkpoint", {"prefix": self.prefix, "tensors": {k: as_json(v) for k, v in tensors.items()}})
        theirs = os.path.join(self.folder.name, "theirs")
        with tf.Graph().as_default(), tf.compat.v1.Session() as session:
            session.run(tf.raw_ops.SaveV2(prefix=theirs, tensor_names=list(tensors),
                                          shape_and_slices=[""] * len(tensors), tensors=list(tensors.values())))
        for suffix in (".index", ".data-00000-of-00001"):
            with open(self.prefix + suffix, "rb") as ours, open(theirs + suffix, "rb") as other:
                self.assertEqual(ours.read(), other.read(), suffix)


class Events(unittest.TestCase):
    def test_tensorboard_sees_every_tag_and_step(self):
        with tempfile.TemporaryDirectory() as folder:
            points = [[step, {"loss": 1.0 / step, "accuracy": step / 100}] for step in (1, 50, 100)]
            tool("write-events", {"folder": folder, "start": 0, "points": points})
            self.assertEqual(scalars(folder),
                             {tag: [(step, float(np.float32(values[tag]))) for step, values in points]
                              for tag in ("loss", "accuracy")})

    def test_a_restart_purges_what_the_dead_run_wrote_later(self):
        with tempfile.TemporaryDirectory() as folder:
            tool("write-events", {"folder": folder, "points": [[step, {"loss": 1.0}] for step in (10, 20, 30)]})
            first = os.listdir(folder)[0]
            os.rename(os.path.join(folder, first), os.path.join(folder, first.replace("tfevents.", "tfevents.0")))
            tool("write-events", {"folder": folder, "start": 20, "points": [[25, {"loss": 0.5}]]})
            self.assertEqual([step for step, _ in scalars(folder)["loss"]], [10, 25])


class Models(unittest.TestCase):
    """Checks that a Sequential model in the JSON of Keras 3 or of tf.keras 2 yields the same
    outputs as in Keras."""

    def check(self, library):
        layers = library.layers
        model = library.Sequential([
            layers.InputLayer(**self.INPUT[library.__name__]), layers.Flatten(),
            layers.Dense(64, activation="relu"), layers.Dropout(0.3), layers.Reshape((8, 8)),
            layers.Flatten(), layers.Dense(32, activation="tanh", use_bias=False), layers.Dense(16), layers.ReLU(),
            layers.Dense(24), layers.Activation("tanh"), layers.Dense(16, activation="sigmoid"), layers.Dense(10),
            layers.Softmax()])
        features = np.random.default_rng(5).random((9, 12, 7), dtype=np.float32)
        expected = np.asarray(model(features))
        weights = {f"{layer.name}/{w.name.split('/')[-1].split(':')[0]}": np.asarray(w)
                   for layer in model.layers for w in layer.weights}
        with tempfile.TemporaryDirectory() as folder:
            prefix = os.path.join(folder, "weights")
            tool("write-checkpoint", {"prefix": prefix, "tensors": {k: as_json(v) for k, v in weights.items()}})
            got = tool("predict", {"model": model.to_json(), "prefix": prefix, "shape": list(features.shape),
                                   "features": features.reshape(-1).tolist()})
        np.testing.assert_allclose(np.float32(got).reshape(expected.shape), expected, rtol=0, atol=1e-5)

    INPUT = {"keras": {"shape": (12, 7)}, "tf_keras": {"input_shape": (12, 7)}}

    def test_keras_3(self):
        self.check(keras)

    def test_tf_keras_2(self):
        self.check(tf_keras)


# The decays are so short that each schedule ends, jumps or starts again within the test's steps.
SCHEDULES = [
    ("exponential_decay", {"decay_steps": 3, "decay_rate": 0.7}),
    ("exponential_decay", {"decay_steps": 2, "decay_rate": 0.5, "staircase": True}),
    ("inverse_time_decay", {"decay_steps": 3, "decay_rate": 0.9}),
    ("inverse_time_decay", {"decay_steps": 2, "decay_rate": 0.9, "staircase": True}),
    ("polynomial_decay", {"decay_steps": 3, "end_learning_rate": 0.01, "power": 2.0}),
    ("polynomial_decay", {"decay_steps": 2, "end_learning_rate": 0.01, "cycle": True}),
    ("cosine_decay", {"decay_steps": 3, "alpha": 0.1}),
    ("cosine_decay", {"decay_steps": 3, "warmup_target": 0.4, "warmup_steps": 2}),
    ("piecewise_constant_decay", {"boundaries": [0, 2], "values": [0.5, 0.2, 0.1]}),
]


def schedule(name, given):
    """Returns Keras' schedule of this name, with an initial learning rate of 0.1 if it takes
    one."""
    make = getattr(keras.optimizers.schedules, "".join(word.title() for word in name.split("_")))
    return make(**given) if "values" in given else make(0.1, **given)


class Optimizers(unittest.TestCase):
    CASES = [
        ({"kind": "sgd", "learning_rate": 0.1}, lambda: keras.optimizers.SGD(0.1)),
        ({"kind": "sgd", "learning_rate": 0.1, "momentum": 0.9}, lambda: keras.optimizers.SGD(0.1, momentum=0.9)),
        ({"kind": "sgd", "learning_rate": 0.1, "momentum": 0.9, "nesterov": True},
         lambda: keras.optimizers.SGD(0.1, momentum=0.9, nesterov=True)),
        ({"kind": "adagrad", "learning_rate": 0.01}, lambda: keras.optimizers.Adagrad(0.01)),
        ({"kind": "adam", "learning_rate": 0.001}, lambda: keras.optimizers.Adam(0.001)),
        ({"kind": "rmsprop", "learning_rate": 0.001}, lambda: keras.optimizers.RMSprop(0.001)),
        ({"kind": "rmsprop", "learning_rate": 0.001, "momentum": 0.5, "centered": True},
         lambda: keras.optimizers.RMSprop(0.001, momentum=0.5, centered=True)),
        # Schedules are tested with SGD, because its step depends on the learning rate alone. Adam's
        # also depends on the powers of the betas, which Keras computes in float32.
        *[({"kind": "sgd", "learning_rate": 0.1, "schedule": {"name": name, **given}},
           lambda name=name, given=given: keras.optimizers.SGD(schedule(name, given)))
          for name, given in SCHEDULES],
    ]

    def test_each_step_equals_keras(self):
        rng = np.random.default_rng(3)
        start = rng.standard_normal(101).astype(np.float32)
        gradients = rng.standard_normal((5, 101)).astype(np.float32)
        for ours, make in self.CASES:
            with self.subTest(**ours):
                steps = tool("apply-optimizer", {"optimizer": ours, "variable": start.tolist(),
                                                 "gradients": gradients.tolist()})
                optimizer, variable = make(), keras.Variable(start)
                optimizer.build([variable])
                for step, gradient in enumerate(gradients):
                    optimizer.apply([tf.constant(gradient)], [variable])
                    np.testing.assert_allclose(np.float32(steps[step]), variable.numpy(), rtol=0, atol=1e-6)
