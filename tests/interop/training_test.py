"""Compares training with Keras 3 in double precision. Other files test layers and losses. run.sh
runs it."""
import json
import tempfile
import unittest

from harness import PREDICTION, as_json, check_exact, in_type, tool
from interop_test import randomize, values, variables

import numpy as np
import tensorflow as tf
import keras

L, R = keras.layers, keras.regularizers
RNG = np.random.default_rng(17)


def dense():
    x = keras.Input((6,), name="x")
    h = L.Dense(5, activation="tanh", kernel_regularizer=R.L1(0.03), bias_regularizer="l2", name="first",
                activity_regularizer=R.L1L2(0.02, 0.04))(x)
    h = L.ActivityRegularization(l1=0.05, l2=0.01)(h)
    h = L.PReLU(alpha_regularizer=R.L1L2(0.1, 0.2), name="slopes")(h)
    shared = L.Dense(5, kernel_regularizer=R.OrthogonalRegularizer(0.3), name="shared", activity_regularizer="l1")
    h = shared(shared(h))
    inner_in = keras.Input((5,), name="inner_in")
    inner = keras.Model(inner_in, L.Dense(4, kernel_regularizer=R.OrthogonalRegularizer(0.4, mode="columns"),
                                          activity_regularizer=R.L2(0.02), name="deep")(inner_in), name="inner")
    frozen = L.Dense(4, kernel_regularizer="l2", activity_regularizer="l2", name="frozen")
    frozen.trainable = False
    return keras.Model(x, frozen(inner(h)), name="dense")


def normalized():
    x = keras.Input((6, 4), name="x")
    rules = {"beta_regularizer": R.L1(0.02), "gamma_regularizer": R.L2(0.03)}
    h = L.BatchNormalization(name="batch", **rules)(x)
    h = L.LayerNormalization(name="layer", **rules)(h)
    h = L.GroupNormalization(2, name="group", **rules)(h)
    h = L.EinsumDense("abc,cd->abd", output_shape=(6, 3), bias_axes="d", kernel_regularizer="l1",
                      bias_regularizer=R.L1L2(0.1, 0.2), activity_regularizer="l2", name="einsum")(h)
    h = L.MultiHeadAttention(2, 3, kernel_regularizer=R.L2(0.02), bias_regularizer=R.L1(0.05), name="attention",
                             activity_regularizer=R.L2(0.02))(h, h)
    return keras.Model(x, h, name="normalized")


def convolved():
    x = keras.Input((8, 7, 2), name="x")
    bias = {"bias_regularizer": R.L1(0.2), "activity_regularizer": R.L2(0.01)}
    h = L.Conv2D(4, 3, kernel_regularizer=R.L2(0.02), name="plain", **bias)(x)
    h = L.DepthwiseConv2D(2, depthwise_regularizer=R.L1(0.03), name="depthwise", **bias)(h)
    h = L.SeparableConv2D(3, 2, depthwise_regularizer=R.L1(0.04), pointwise_regularizer=R.L2(0.05), name="separable",
                          **bias)(h)
    h = L.Conv2DTranspose(2, 2, kernel_regularizer=R.L1L2(0.01, 0.02), name="transposed", **bias)(h)
    return keras.Model(x, L.Flatten()(h), name="convolved")


def recurrent():
    x = keras.Input((5, 3), name="x")
    rules = {"kernel_regularizer": R.L2(0.02), "recurrent_regularizer": R.L1(0.03), "bias_regularizer": R.L2(0.04)}
    activity = {"activity_regularizer": R.L1L2(0.01, 0.02)}
    h = L.Bidirectional(L.LSTM(3, return_sequences=True, name="lstm", **rules, **activity), name="both", **activity)(x)
    h = L.SimpleRNN(4, return_sequences=True, name="simple", **rules)(h)
    h = L.TimeDistributed(L.Dense(3, kernel_regularizer="l1", name="each"), name="steps")(h)
    h, state = L.GRU(3, return_state=True, name="gru", **rules, **activity)(h)
    return keras.Model(x, L.Add()([h, state]), name="recurrent")


def looked_up():
    ids = keras.Input((4,), name="ids")
    h = L.Embedding(9, 5, embeddings_regularizer=R.L2(0.02), activity_regularizer=R.L1(0.03), name="table")(ids)
    return keras.Model(ids, L.Flatten()(h), name="looked_up")


def constrained():
    x = keras.Input((6, 5, 2), name="x")
    C = keras.constraints
    h = L.Conv2D(4, 3, kernel_constraint=C.UnitNorm([0, 1, 2]), bias_constraint="non_neg", name="plain")(x)
    h = L.SeparableConv2D(3, 2, depthwise_constraint=C.MaxNorm(0.4, axis=[0, 1]), bias_constraint=C.UnitNorm(),
                          pointwise_constraint=C.MinMaxNorm(0.5, 0.7, rate=0.6, axis=2), name="separable")(h)
    h = L.DepthwiseConv2D(2, depthwise_constraint=C.MaxNorm(0.5, axis=-1), name="depthwise")(h)
    rules = {"beta_constraint": "unit_norm", "gamma_constraint": C.MaxNorm(1.3)}
    h = L.BatchNormalization(name="batch", **rules)(h)
    h = L.PReLU(alpha_constraint="non_neg", name="slopes")(L.LayerNormalization(name="layer", **rules)(h))
    h = L.Reshape((2, -1))(h)
    h = L.LSTM(3, kernel_constraint="max_norm", recurrent_constraint=C.UnitNorm(1), bias_constraint="non_neg",
               return_sequences=True, name="lstm")(h)
    h = L.MultiHeadAttention(2, 2, kernel_constraint=C.UnitNorm([0, 1]), bias_constraint="non_neg", name="heads")(h, h)
    h = L.Dense(4, kernel_constraint=C.MinMaxNorm(0.3, 0.5), name="dense")(h)
    return keras.Model(x, h, name="constrained")


def constrained_table():
    ids = keras.Input((4,), name="ids")
    h = L.Embedding(9, 5, embeddings_constraint=keras.constraints.MaxNorm(0.7, axis=1), name="table")(ids)
    return keras.Model(ids, L.Flatten()(h), name="looked_up")


class Case:
    """A model in single and in double precision, with equal weights, and its data."""

    def __init__(self, make, optimizer=lambda: keras.optimizers.SGD(0.1), most=0.3, batch=4):
        keras.utils.set_random_seed(3)
        self.model, self.double, self.optimizer = make(), in_type("float64", make), optimizer
        randomize(self.model, RNG, most)
        for weight in self.double.weights:
            if hasattr(weight.regularizer, "factor"):  # Keras keeps it as float32
                weight.regularizer.factor = tf.cast(weight.regularizer.factor, tf.float64)
        self.double.set_weights([np.float64(w) for w in self.model.get_weights()])
        self.json = self.model.to_json()
        self.x = [RNG.standard_normal((batch, *x.shape[1:])).astype(np.float32) for x in self.model.inputs]
        if self.model.name == "looked_up":
            self.x = [np.abs(self.x[0] * 3).round().astype(np.float32)]
        self.y = [RNG.standard_normal((batch, *y.shape[1:])).astype(np.float32) for y in self.model.outputs]

    def ours(self, steps, optimizer):
        with tempfile.TemporaryDirectory() as folder:
            prefix = f"{folder}/weights"
            tensors = {name: as_json(value) for name, value in variables(self.model).items()}
            tool("write-checkpoint", {"prefix": prefix, "tensors": tensors})
            return tool("train", {"model": self.json, "prefix": prefix, "inputs": [values(x) for x in self.x],
                                  "labels": [values(y) for y in self.y], "steps": steps, "optimizer": optimizer})

    def theirs(self, model, steps):
        """Returns the losses and the variables of Keras, and the loss that evaluate() reports
        afterwards."""
        model.compile(self.optimizer(), ["mse"] * len(self.y), run_eagerly=True)
        x, y = [np.asarray(part, model.dtype) for part in self.x], [np.asarray(part, model.dtype) for part in self.y]
        x, y = x[0] if len(x) == 1 else x, y[0] if len(y) == 1 else y
        losses = []
        for _ in range(steps):
            losses.append(float(np.asarray(model.train_on_batch(x, y, return_dict=True)["loss"])))
            model.reset_metrics()
        return losses, variables(model)


class Training(unittest.TestCase):
    def check_steps(self, case, steps, optimizer):
        """Compares the losses and the variables, within the bound for predictions."""
        def flat(losses, weights):
            return {"losses": np.float64(losses), **{name: np.float64(value) for name, value in weights.items()}}

        got = case.ours(steps, optimizer)
        exact = flat(*in_type("float64", lambda: case.theirs(case.double, steps)))
        check_exact(self, flat(got["losses"], got["variables"]), exact,
                    lambda: flat(*case.theirs(case.model, steps)), PREDICTION)

    def test_regularizers(self):
        for make in (dense, normalized, convolved, recurrent, looked_up):
            with self.subTest(model=make.__name__):
                self.check_steps(Case(make), 3, {"kind": "sgd", "learning_rate": 0.1})

    # Constraints also apply in steps that do not update a variable, and after a variable has been set to its average.
    def test_constraints(self):
        for given in ({}, {"momentum": 0.5}, {"gradient_accumulation_steps": 2},
                      {"use_ema": True, "ema_momentum": 0.6, "ema_overwrite_frequency": 2}):
            for make in (constrained, constrained_table):
                with self.subTest(model=make.__name__, **given):
                    case = Case(make, lambda given=given: keras.optimizers.SGD(0.1, **given))
                    self.check_steps(case, 3, {"kind": "sgd", "learning_rate": 0.1, **given})

    def test_keras_reads_the_rules_that_we_write(self):
        for make in (dense, normalized, convolved, recurrent, looked_up):
            with self.subTest(model=make.__name__):
                model = make()
                again = keras.models.model_from_json(json.dumps(tool("rewrite", {"model": model.to_json()})))
                again.set_weights(model.get_weights())
                x = [np.ones((2, *x.shape[1:]), np.float32) for x in model.inputs]
                for each in (model, again):
                    each(x if len(x) > 1 else x[0])
                np.testing.assert_array_equal([np.asarray(loss) for loss in again.losses],
                                              [np.asarray(loss) for loss in model.losses])
                self.assertGreater(len(model.losses), 0)
        for make in (constrained, constrained_table):
            config = json.loads(make().to_json())["config"]["layers"]
            again = json.loads(keras.models.model_from_json(json.dumps(tool("rewrite", {"model": make().to_json()})))
                               .to_json())["config"]["layers"]
            constraints = [{key: value for key, value in layer["config"].items() if key.endswith("_constraint")}
                           for layer in config]
            self.assertEqual([{key: layer["config"][key] for key in wanted}
                              for layer, wanted in zip(again, constraints)], constraints)
