"""Compares tables (Embedding) with Keras: outputs, masks, and the variables after steps of each optimizer.

If a batch contains a row several times, Keras on TensorFlow applies the row's gradients one by one, unlike Keras on its
other backends. The steps therefore use dense gradients, in which TensorFlow has already added the gradients of each
row."""
import json
import os
import tempfile
import unittest

from harness import PREDICTION, as_json, check_exact, in_double, in_type, numbered, tool
from interop_test import values, variables

import numpy as np
import tensorflow as tf
import keras
import tf_keras


def ids(rng, *shape):
    return rng.integers(0, 23, shape).astype(np.float32)


def texts(library):
    """Returns a classifier of texts."""
    L = library.layers
    x = library.Input((6,), name="words")
    h = L.Embedding(23, 5, name="table")(x)
    return library.Model(x, L.Dense(3, name="logits")(L.GlobalAveragePooling1D()(h)), name="texts")


def padded(library):
    """Returns a classifier of texts that end with zeros. The classifier is a Sequential model,
    because in a functional model, Keras 3 writes the computation of the mask as additional
    layers."""
    L = library.layers
    return library.Sequential([library.Input((6,)), L.Embedding(23, 5, mask_zero=True, name="table"),
                               L.GlobalAveragePooling1D(name="mean"), L.Dense(3, name="logits")])


def pairs(library):
    """Returns a model that uses one table for two inputs, and another table for single ids."""
    L = library.layers
    a, b, c = library.Input((4,), name="a"), library.Input((3,), name="b"), library.Input((1,), name="c")
    shared = L.Embedding(23, 4, name="shared", embeddings_initializer="random_normal")
    h = L.Concatenate()([L.GlobalAveragePooling1D()(shared(a)), L.GlobalMaxPooling1D()(shared(b)),
                         L.Flatten()(L.Embedding(23, 2, name="single")(c))])
    return library.Model([a, b, c], L.Dense(2, name="out")(h), name="pairs")


OPTIMIZERS = [
    ({"kind": "sgd", "learning_rate": 0.1}, lambda: keras.optimizers.SGD(0.1)),
    ({"kind": "sgd", "learning_rate": 0.1, "momentum": 0.9}, lambda: keras.optimizers.SGD(0.1, momentum=0.9)),
    ({"kind": "adagrad", "learning_rate": 0.1}, lambda: keras.optimizers.Adagrad(0.1)),
    ({"kind": "adam", "learning_rate": 0.01}, lambda: keras.optimizers.Adam(0.01)),
    ({"kind": "rmsprop", "learning_rate": 0.01}, lambda: keras.optimizers.RMSprop(0.01)),
]


class Tables(unittest.TestCase):
    def request(self, folder, model, inputs):
        prefix = os.path.join(folder, "weights")
        tool("write-checkpoint", {"prefix": prefix, "tensors": {k: as_json(v) for k, v in variables(model).items()}})
        return {"model": model.to_json(), "prefix": prefix, "inputs": [values(x) for x in inputs]}

    def check_outputs(self, library, model, inputs):
        with tempfile.TemporaryDirectory() as folder:
            got = tool("predict", self.request(folder, model, inputs))
        outputs = lambda model: numbered(model(inputs if len(inputs) > 1 else inputs[0]))
        exact = in_type("float64", lambda: outputs(in_double(library, model)), library)
        check_exact(self, numbered(got), exact, lambda: outputs(model), PREDICTION)

    def check_steps(self, make_model, inputs, ours, make_optimizer, steps=3):
        """Compares the variables after steps, within the bound for predictions."""
        model = make_model(keras)
        inputs_of = inputs if len(inputs) > 1 else inputs[0]
        labels = np.random.default_rng(1).random(tuple(model(inputs_of).shape), dtype=np.float32)
        with tempfile.TemporaryDirectory() as folder:
            request = self.request(folder, model, inputs) | {"labels": [values(labels)], "optimizer": ours}
            got = tool("train-step", request | {"steps": steps})

        def after(model):
            optimizer = make_optimizer()
            for _ in range(steps):
                with tf.GradientTape() as tape:
                    loss = tf.reduce_mean(tf.square(model(inputs_of, training=True) - labels))
                gradients = tape.gradient(loss, [v.value for v in model.trainable_variables])
                optimizer.apply([tf.convert_to_tensor(g) for g in gradients], model.trainable_variables)
            return {name: np.float64(value) for name, value in variables(model).items()}

        exact = in_type("float64", lambda: after(in_double(keras, model)))
        check_exact(self, got, exact, lambda: after(model), PREDICTION)

    def test_outputs(self):
        rng = np.random.default_rng(3)
        for library in (keras, tf_keras):
            with self.subTest(library=library.__name__):
                self.check_outputs(library, texts(library), [ids(rng, 8, 6)])
                self.check_outputs(library, texts(library), [ids(rng, 8, 6) + 0.75])
                self.check_outputs(library, pairs(library), [ids(rng, 8, 4), ids(rng, 8, 3), ids(rng, 8, 1)])

    def test_masks(self):
        words = ids(np.random.default_rng(4), 8, 6)
        words[:, 3:] = 0
        words[:, 0] = 5
        for library in (keras, tf_keras):
            with self.subTest(library=library.__name__):
                self.check_outputs(library, padded(library), [words])

    def test_steps_of_each_optimizer(self):
        rng = np.random.default_rng(5)
        words, inputs = [ids(rng, 8, 6)], [ids(rng, 8, 4), ids(rng, 8, 3), ids(rng, 8, 1)]
        for ours, make in OPTIMIZERS:
            with self.subTest(**ours):
                self.check_steps(texts, words, ours, make)
                self.check_steps(pairs, inputs, ours, make)

    def test_keras_reads_what_we_write(self):
        model = pairs(keras)
        again = keras.models.model_from_json(json.dumps(tool("rewrite", {"model": model.to_json()})))
        again.set_weights(model.get_weights())
        rng = np.random.default_rng(6)
        inputs = [ids(rng, 8, 4), ids(rng, 8, 3), ids(rng, 8, 1)]
        np.testing.assert_array_equal(again(inputs), model(inputs))


if __name__ == "__main__":
    unittest.main()
