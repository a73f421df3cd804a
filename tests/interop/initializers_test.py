"""Compares the distributions of initial values with Keras, for each argument of each initializer in
docs/training-file.md. run.sh runs it.

The random numbers themselves differ. The two-sample Kolmogorov–Smirnov test compares samples of 100,000 values.
The seeds are fixed, so the result is the same in every run."""
import os
import re
import unittest

from harness import tool

import numpy as np
import keras

DOCS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../docs")
L, I = keras.layers, keras.initializers
SHAPE = (250, 400)  # fan in 250, fan out 400
# Samples of equal distributions differ by more than LIMIT with probability 2·exp(-2·LIMIT²·n/2), that is 1e-5, where n
# is the number of values. Changing a standard deviation by 4 % changes the statistic by about as much.
LIMIT = np.sqrt(-np.log(0.5e-5) / (SHAPE[0] * SHAPE[1]))

# {class: [arguments, …]}: each argument has at least one value that is not its default.
CASES = {
    "Zeros": [{}], "Ones": [{}], "Constant": [{}, {"value": 2.5}],
    "RandomNormal": [{}, {"mean": 0.3}, {"stddev": 1.5}],
    "RandomUniform": [{}, {"minval": -0.2}, {"maxval": 0.3}],
    "TruncatedNormal": [{}, {"mean": 0.3}, {"stddev": 1.5}],
    **{f"{name}{kind}": [{}] for name in ("Glorot", "He", "Lecun") for kind in ("Uniform", "Normal")},
    "VarianceScaling": [{}, {"scale": 3.0}, {"mode": "fan_out"}, {"mode": "fan_avg"}, {"distribution": "uniform"},
                        {"distribution": "untruncated_normal"},
                        {"scale": 0.2, "mode": "fan_avg", "distribution": "untruncated_normal"}],
    "Orthogonal": [{}, {"gain": 1.5}], "Identity": [{}, {"gain": 1.5}],
}
DISTINCT = "seed"  # has a test of its own

# Layers that define fans in different ways, and the variable whose values are compared. Each has about 100,000 values.
LAYERS = {
    "convolution": (lambda rule: L.Conv2D(320, (5, 4), kernel_initializer=rule), (8, 8, 16), "kernel"),
    "depthwise": (lambda rule: L.DepthwiseConv2D((5, 4), depth_multiplier=5, depthwise_initializer=rule), (8, 8, 1000),
                  "kernel"),
    "separable, depthwise": (lambda rule: L.SeparableConv2D(2, (5, 4), depth_multiplier=5, depthwise_initializer=rule),
                             (8, 8, 1000), "depthwise_kernel"),
    "separable, pointwise": (lambda rule: L.SeparableConv1D(400, 2, pointwise_initializer=rule), (8, 250),
                             "pointwise_kernel"),
    "transposed": (lambda rule: L.Conv2DTranspose(320, (5, 4), kernel_initializer=rule), (8, 8, 16), "kernel"),
    "volume": (lambda rule: L.Conv3D(160, (5, 4, 2), kernel_initializer=rule), (8, 8, 8, 16), "kernel"),
    "einsum": (lambda rule: L.EinsumDense("abc,cde->abde", (4, 25, 40), kernel_initializer=rule), (4, 100), "kernel"),
    "bias": (lambda rule: L.Dense(100_000, bias_initializer=rule), (1,), "bias"),
    "embedding": (lambda rule: L.Embedding(250, 400, embeddings_initializer=rule), (3,), "embeddings"),
    "query": (lambda rule: L.MultiHeadAttention(25, 40, kernel_initializer=rule), (4, 100), "query/kernel"),
    "output of the heads": (lambda rule: L.MultiHeadAttention(25, 40, kernel_initializer=rule), (4, 100),
                            "attention_output/kernel"),
    "recurrent": (lambda rule: L.LSTM(160, recurrent_initializer=rule), (4, 3), "recurrent_kernel"),
    "frames": (lambda rule: L.ConvLSTM2D(40, (4, 4), recurrent_initializer=rule, padding="same"), (2, 8, 8, 3),
               "recurrent_kernel"),
    "slopes": (lambda rule: L.PReLU(alpha_initializer=rule), (250, 400), "alpha"),
}


def documented():
    """Returns the table of initializers in docs/training-file.md: {class: its arguments}."""
    with open(f"{DOCS}/training-file.md") as page:
        section = page.read().split("\n### Initializers\n")[1]
    rows = re.findall(r"^\| (?:`\w+`(?:, )?)+ \| ((?:`\w+`(?:, )?)+) \| (.*) \|$", section, re.MULTILINE)
    return {name: re.findall(r"`(\w+)`", text) for classes, text in rows for name in re.findall(r"`(\w+)`", classes)}


def distance(a, b):
    """Returns the greatest difference between the distribution functions of two samples."""
    a, b = np.sort(np.ravel(a)), np.sort(np.ravel(b))
    both = np.concatenate([a, b])
    return np.abs(np.searchsorted(a, both, "right") / a.size - np.searchsorted(b, both, "right") / b.size).max()


def values_of(layer, inputs, variable, seed=1, takes_two=False, edit=lambda text: text):
    """Returns the initial values of a variable, ours and Keras'. `edit` changes the model's JSON."""
    x = keras.Input(inputs)
    model = keras.Model(x, layer(x, x) if takes_two else layer(x))
    weight = next(weight for weight in model.weights if weight.path.endswith("/" + variable))
    got = tool("initial-values", {"model": edit(model.to_json()), "inputs": [[2, *inputs]], "seed": seed})
    return np.reshape(next(value for name, value in got.items() if name.endswith("/" + variable)), weight.shape), \
        np.asarray(weight)


def kernels(rule, seed=1):
    return values_of(L.Dense(SHAPE[1], kernel_initializer=rule), SHAPE[:1], "kernel", seed)


class Initializers(unittest.TestCase):
    def setUp(self):
        keras.utils.clear_session()
        keras.utils.set_random_seed(7)

    def check_distribution(self, ours, theirs):
        self.assertEqual(ours.shape, theirs.shape)
        self.assertLess(distance(ours, theirs), LIMIT)
        size = np.abs(theirs).max()
        self.assertLessEqual(np.abs(ours).max(), 1.4 * size)  # uniform and truncated values have nearly equal extremes

    def test_each_argument_has_a_case(self):
        for name, arguments in documented().items():
            given = {key for case in CASES.get(name, []) for key in case}
            self.assertEqual(set(arguments) - {DISTINCT}, given, f"{name}: give each argument a case in CASES")
        self.assertEqual(set(CASES), set(documented()))

    def test_distributions_equal_those_of_keras(self):
        for name, cases in CASES.items():
            for arguments in cases:
                if name in ("Orthogonal", "Identity"):
                    continue
                with self.subTest(initializer=name, **arguments):
                    ours, theirs = kernels(getattr(I, name)(**arguments))
                    self.check_distribution(ours, theirs)
                    if name in ("Zeros", "Ones", "Constant"):
                        np.testing.assert_array_equal(ours, theirs)

    def test_the_statistic_tells_distributions_apart(self):
        normal = np.random.default_rng(1).standard_normal(SHAPE)
        self.assertGreater(distance(normal, 1.05 * np.random.default_rng(2).standard_normal(SHAPE)), LIMIT)
        self.assertLess(distance(normal, np.random.default_rng(2).standard_normal(SHAPE)), LIMIT)

    def test_the_fans_of_each_kind_of_variable_equal_those_of_keras(self):
        for name, (make, inputs, variable) in LAYERS.items():
            for mode in ("fan_in", "fan_out", "fan_avg"):
                with self.subTest(variable=name, mode=mode):
                    keras.utils.clear_session()
                    rule = I.VarianceScaling(mode=mode, distribution="untruncated_normal")
                    self.check_distribution(*values_of(make(rule), inputs, variable,
                                                       takes_two="query" in name or "heads" in name))

    def test_orthogonal_matrices_are_orthogonal(self):
        for shape in ((60, 20), (20, 60), (40, 40)):
            for gain in (1.0, 1.5):
                with self.subTest(shape=shape, gain=gain):
                    rule = I.Orthogonal(gain=gain)
                    ours, theirs = values_of(L.Dense(shape[1], kernel_initializer=rule), shape[:1], "kernel")
                    for matrix in (ours, theirs):
                        wide = matrix if shape[0] < shape[1] else matrix.T
                        np.testing.assert_allclose(wide @ wide.T, gain**2 * np.eye(len(wide)), rtol=0, atol=1e-5)

    def test_orthogonal_values_have_the_distribution_of_keras(self):
        # The signs of a decomposition may bias the values: compare those of many small matrices.
        samples = []
        for seed in range(40):
            keras.utils.clear_session()
            samples.append(values_of(L.Dense(50, kernel_initializer=I.Orthogonal(seed=seed)), (50,), "kernel"))
        self.check_distribution(*(np.concatenate(part) for part in zip(*samples)))

    def test_identities_equal_those_of_keras(self):
        for shape in ((4, 4), (3, 5), (5, 3)):
            for gain in (1.0, 1.5):
                # Keras does not write the gain.
                edit = lambda text: re.sub(r'("class_name": "Identity", "config": {)(})', rf'\1"gain": {gain}\2', text)
                ours, theirs = values_of(L.Dense(shape[1], kernel_initializer=I.Identity(gain=gain)), shape[:1],
                                         "kernel", edit=edit)
                np.testing.assert_array_equal(ours, theirs)

    def test_seeds_determine_the_values(self):
        for name, arguments in documented().items():
            if DISTINCT not in arguments:
                continue
            with self.subTest(initializer=name):
                keras.utils.clear_session()
                make = getattr(I, name)
                of_run, other_run = kernels(make(), 1)[0], kernels(make(), 2)[0]
                own, other = kernels(make(seed=3), 1)[0], kernels(make(seed=4), 1)[0]
                keras.utils.clear_session()  # the next layer gets the name of the first one
                again = kernels(make(), 1)[0]
                self.assertFalse(np.array_equal(of_run, other_run))
                self.assertFalse(np.array_equal(of_run, own))
                self.assertFalse(np.array_equal(own, other))
                np.testing.assert_array_equal(of_run, again)
