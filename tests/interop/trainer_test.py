"""Checks the files that tfjob-trainer writes with TensorFlow, Keras and TensorBoard. Also lets
tfjob-trainer continue from a checkpoint that TensorFlow has written. run.sh runs it."""
import contextlib
import io
import os
import re
import struct
import tempfile
import unittest

from harness import (PREDICTION, as_array, as_json, check_exact, graph, in_double, in_type, scalars, tool,
                     train)

import numpy as np
import keras
import tensorflow as tf

from interop_test import variables

DOCS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs")


def write_images(folder, name, count, seed):
    """Writes a data set of ten noisy patterns as IDX files. Returns its entry for the training
    file, the features as the model receives them, and the labels."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 10, count).astype(np.uint8)
    patterns = np.random.default_rng(0).integers(0, 256, (10, 28, 28))
    images = ((patterns[labels] + rng.integers(0, 256, (count, 28, 28))) // 2).astype(np.uint8)
    source = {"format": "idx", "scale": "1/255"}
    for kind, array in ("images", images), ("labels", labels):
        source[kind] = f"{folder}/{name}-{kind}"
        with open(source[kind], "wb") as file:
            file.write(struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape))
            file.write(array.tobytes())
    return source, images.astype(np.float32) / 255, labels.astype(np.int64)


def training_file(layers, **keys):
    return {"model": {"layers": [{"InputLayer": {"batch_shape": [None, 28, 28]}}, {"Flatten": None}, *layers]},
            "loss": {"name": "sparse_categorical_crossentropy", "from_logits": True}, "metrics": ["accuracy"], **keys}


class Written(unittest.TestCase):
    """Tests the output of one run: thirty steps with Adam, with the model in
    docs/checkpoints.md."""
    STEPS = 30
    VARIABLES = {"dense/kernel": [784, 512], "dense/bias": [512], "dense_1/kernel": [512, 10], "dense_1/bias": [10]}

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.model_dir = folder.name + "/model"
        to_train, _, _ = write_images(folder.name, "train", 400, seed=1)
        to_evaluate, cls.features, cls.labels = write_images(folder.name, "eval", 100, seed=2)
        train(training_file(
            [{"Dense": {"units": 512, "activation": "relu"}}, {"Dropout": {"rate": 0.2}}, {"Dense": {"units": 10}}],
            optimizer={"name": "adam", "learning_rate": 0.001}, data={"train": to_train, "eval": to_evaluate},
            batch_size=20, max_steps=cls.STEPS, model_dir=cls.model_dir, save_checkpoints_steps=10,
            save_summary_steps=10))

    def test_tensorflow_finds_variables_slots_and_step(self):
        last, first = f"{self.model_dir}/model.ckpt-{self.STEPS}", f"{self.model_dir}/model.ckpt-0"
        self.assertEqual(tf.train.latest_checkpoint(self.model_dir), last)
        reader, start = tf.train.load_checkpoint(self.model_dir), tf.train.load_checkpoint(first)
        slots = {f"{name}/{slot}": shape for name, shape in self.VARIABLES.items() for slot in ("Adam", "Adam_1")}
        found = reader.get_variable_to_shape_map()
        self.assertEqual(len(found.pop("tfjob/ledger")), 1)
        self.assertEqual(len(found.pop("tfjob/optimizer")), 1)
        self.assertEqual(found, {**self.VARIABLES, **slots, "global_step": []})
        self.assertEqual(start.get_tensor("global_step"), 0)
        self.assertEqual(reader.get_tensor("global_step"), self.STEPS)
        ours = tool("read-checkpoint", {"prefix": last})
        for name in found:
            value, read = np.asarray(reader.get_tensor(name)), as_array(ours[name])
            self.assertEqual(value.dtype, read.dtype, name)
            self.assertTrue(value.tobytes() == read.tobytes(), name)
            self.assertTrue(np.isfinite(value).all(), name)
            self.assertFalse(np.array_equal(value, start.get_tensor(name)), f"{name} is as at step 0")
        for name in slots:
            self.assertFalse(np.any(start.get_tensor(name)), f"{name} at step 0")
            self.assertTrue(name.endswith("/Adam") or np.all(reader.get_tensor(name) >= 0), name)

    def test_tensorboard_sees_every_tag_at_its_steps(self):
        seen = scalars(self.model_dir)
        self.assertEqual(sorted(seen), ["accuracy", "global_step/sec", "loss", "staleness"])
        for tag, points in seen.items():
            self.assertEqual([step for step, _ in points], [10, 20, 30], tag)
        values = {tag: [value for _, value in points] for tag, points in seen.items()}
        self.assertLess(values["loss"][-1], values["loss"][0])
        self.assertGreater(values["accuracy"][-1], values["accuracy"][0])
        self.assertLessEqual(values["accuracy"][-1], 1)
        self.assertGreater(min(values["global_step/sec"]), 0)
        self.assertEqual(values["staleness"], [0, 0, 0])

    def test_tensorboard_finds_the_graph(self):
        nodes = graph(self.model_dir)
        product = nodes["dense/MatMul"]
        self.assertEqual((product.op, list(product.input)), ("MatMul", ["flatten/Reshape", "dense/kernel"]))
        shape = nodes["dense/kernel"].attr["_output_shapes"].list.shape[0]
        self.assertEqual([dim.size for dim in shape.dim], self.VARIABLES["dense/kernel"])
        self.assertEqual(nodes["dense/kernel"].attr["dtype"].type, tf.float32.as_datatype_enum)

    def test_keras_gets_the_same_loss_and_accuracy_by_the_lines_of_the_page(self):
        with open(f"{DOCS}/checkpoints.md") as page:
            [lines] = re.findall(r"^```python\n(.*?)^```", page.read(), re.MULTILINE | re.DOTALL)
        stated = '"/root/.local/share/tfjob/claims/default/fashion-mnist-model"'
        self.assertEqual(lines.count(stated), 1)
        names, said = {}, io.StringIO()
        with contextlib.redirect_stdout(said):
            exec(lines.replace(stated, repr(self.model_dir)), names)
        self.assertIn(f"{self.model_dir}/model.ckpt-{self.STEPS} {self.STEPS}\n", said.getvalue())
        logits = np.asarray(names["model"](self.features))
        loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)(self.labels, logits)
        evaluated = scalars(self.model_dir + "/eval")
        self.assertEqual({tag: [step for step, _ in points] for tag, points in evaluated.items()},
                         {"loss": [self.STEPS], "accuracy": [self.STEPS]})
        np.testing.assert_allclose(evaluated["loss"][0][1], float(loss), rtol=1e-4)
        np.testing.assert_allclose(evaluated["accuracy"][0][1], np.mean(logits.argmax(1) == self.labels), rtol=1e-6)


def train_in_tensorflow(features, labels, model_dir):
    """Trains a model of two layers with TensorFlow 1's Adam for four steps. Each step uses all
    rows. The Saver saves the model after the third step. Returns the loss after the third step, and
    {name: variable} after the fourth."""
    v1 = tf.compat.v1
    with tf.Graph().as_default(), v1.Session() as session:
        v1.set_random_seed(5)
        step = v1.train.get_or_create_global_step()
        x = tf.constant(features.reshape(len(features), -1))
        for name, units, activation in ("dense", 16, tf.tanh), ("dense_1", 10, tf.identity):
            kernel = v1.get_variable(f"{name}/kernel", [x.shape[-1], units])
            bias = v1.get_variable(f"{name}/bias", [units], initializer=v1.zeros_initializer())
            x = activation(tf.matmul(x, kernel) + bias)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=x))
        update = v1.train.AdamOptimizer(0.001).minimize(loss, global_step=step)
        session.run(v1.global_variables_initializer())
        for _ in range(3):
            session.run(update)
        os.makedirs(model_dir)
        v1.train.Saver().save(session, f"{model_dir}/model.ckpt", global_step=3)
        loss_after_three = session.run(loss)
        session.run(update)
        variables = {variable.op.name: variable for variable in v1.global_variables()}
        return loss_after_three, session.run(variables)


class Continued(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.model_dir = folder.name + "/model"
        source, features, labels = write_images(folder.name, "train", 64, seed=3)
        self.loss_after_three, self.after_four = train_in_tensorflow(features, labels, self.model_dir)
        self.keys = training_file(
            [{"Dense": {"units": 16, "activation": "tanh"}}, {"Dense": {"units": 10}}],
            optimizer={"name": "adam", "learning_rate": 0.001, "epsilon": 1e-8},
            data={"train": source, "eval": source}, batch_size=64, model_dir=self.model_dir)

    def test_a_run_that_tensorflow_finished_is_evaluated(self):
        log = train({**self.keys, "max_steps": 3})
        self.assertRegex(log, r"restored a checkpoint .*step=3\b")
        [(step, loss)] = scalars(self.model_dir + "/eval")["loss"]
        self.assertEqual(step, 3)
        np.testing.assert_allclose(loss, self.loss_after_three, rtol=1e-5)
        self.assertEqual(tf.train.latest_checkpoint(self.model_dir), self.model_dir + "/model.ckpt-3")

    def test_the_next_step_is_the_one_that_tensorflow_takes(self):
        train({**self.keys, "max_steps": 4})
        reader = tf.train.load_checkpoint(self.model_dir)
        # The trainer derives the bias correction from global_step. It reads all other values by the
        # names of TensorFlow 1.
        theirs = {name: value for name, value in self.after_four.items() if not name.endswith("_power")}
        self.assertEqual(len(theirs), 13, sorted(theirs))
        for name, expected in theirs.items():
            np.testing.assert_allclose(reader.get_tensor(name), expected, rtol=0,
                                       atol=1e-4 * np.abs(expected).max(), err_msg=name)

    def test_a_step_of_rate_zero_leaves_every_bit(self):
        before = tf.train.load_checkpoint(self.model_dir)
        train({**self.keys, "max_steps": 4, "optimizer": {"name": "adam", "learning_rate": 0}})
        after = tf.train.load_checkpoint(self.model_dir)
        self.assertEqual(after.get_tensor("global_step"), 4)
        for name in ("dense/kernel", "dense/bias", "dense_1/kernel", "dense_1/bias"):
            self.assertTrue(after.get_tensor(name).tobytes() == before.get_tensor(name).tobytes(), name)


class SeveralOutputs(unittest.TestCase):
    """Compares one training step with Keras: losses, metrics and variables, with loss weights,
    sample weights and class weights. The model has two inputs and two outputs; one output has a
    label per step of a sequence."""
    CLASS_WEIGHTS = {0: 1.0, 1: 5.0, 2: 0.5}

    def examples(self):
        rng = np.random.default_rng(11)
        return {"a": rng.standard_normal((16, 5)).astype(np.float32), "b": rng.integers(0, 4, (16, 3)).astype(np.int8),
                "kind": rng.integers(0, 3, 16).astype(np.uint8), "steps": rng.integers(0, 4, (16, 2)),
                "w": rng.random((16, 2))}

    def model(self):
        L = keras.layers
        a, b = keras.Input((5,), name="a"), keras.Input((3,), name="b")
        h = L.Dense(8, activation="tanh", name="shared")(L.Concatenate(name="both")([a, b]))
        return keras.Model([a, b], [L.Dense(3, activation="softmax", name="kind")(h),
                                    L.Reshape((2, 4), name="steps")(L.Dense(8, name="flat")(h))], name="two")

    def test_a_step_is_the_one_that_keras_takes(self):
        arrays, model = self.examples(), self.model()
        with tempfile.TemporaryDirectory() as folder:
            np.savez_compressed(f"{folder}/train.npz", **arrays)
            with open(f"{folder}/model.json", "w") as file:
                file.write(model.to_json())
            tool("write-checkpoint", {"prefix": f"{folder}/start",
                                      "tensors": {k: as_json(v) for k, v in variables(model).items()}})
            train({"model": {"keras_json": f"{folder}/model.json", "weights": f"{folder}/start"},
                   "outputs": {"kind": {"loss": "sparse_categorical_crossentropy", "loss_weight": 0.7,
                                        "metrics": ["accuracy"], "class_weight": {"0": 1, "1": 5, "2": 0.5}},
                               "steps": {"loss": {"name": "sparse_categorical_crossentropy", "from_logits": True},
                                         "loss_weight": 2.0, "metrics": ["accuracy"]}},
                   "data": {"train": {"format": "npz", "file": f"{folder}/train.npz", "sample_weights": {"steps": "w"}}},
                   "optimizer": {"name": "sgd", "learning_rate": 0.5}, "batch_size": 16, "max_steps": 1,
                   "model_dir": f"{folder}/run", "save_summary_steps": 1})
            seen = {tag: points[0][1] for tag, points in scalars(f"{folder}/run").items()}
            reader = tf.train.load_checkpoint(f"{folder}/run")
            got = {name: reader.get_tensor(name) for name in variables(model)}
        losses = keras.losses.SparseCategoricalCrossentropy
        weights = np.array([self.CLASS_WEIGHTS[label] for label in arrays["kind"]])

        def step(model):
            model.compile(optimizer=keras.optimizers.SGD(0.5), loss=[losses(), losses(from_logits=True)],
                          loss_weights=[0.7, 2.0], metrics=[["accuracy"], ["accuracy"]])
            x = [arrays[name].astype(keras.config.floatx()) for name in ("a", "b")]
            wanted = model.train_on_batch(x, [arrays["kind"], arrays["steps"]], sample_weight=[weights, arrays["w"]],
                                          return_dict=True)
            return wanted, {name: np.float64(value) for name, value in variables(model).items()}

        wanted, after = in_type("float64", lambda: step(in_double(keras, model)))
        self.assertEqual(set(wanted), {"loss", "kind_loss", "steps_loss", "kind_accuracy", "steps_accuracy"})
        for name, value in wanted.items():
            np.testing.assert_allclose(seen[name], value, rtol=1e-5, err_msg=name)
        check_exact(self, got, after, lambda: step(model)[1], PREDICTION)
