"""Compares whole models with Keras in float64: the small examples of deploy/examples/models, and functional models
with skip connections, shared layers, several inputs and outputs, and nested models. The trainer reads each of them as
JSON and as .keras, predicts, and takes a step of plain SGD.

run.sh runs it. The weights and the data are drawn from the first seed with which rounding does not
decide any gradient. Dropout is off."""
import glob
import os
import re
import tempfile
import unittest
import warnings

from harness import PREDICTION, STEP, check_exact, differences, listed, numbered

import numpy as np
import keras
import yaml

from interop_test import variables
from model_case import EXAMPLES, FORMS, Case

L, ops = keras.layers, keras.ops
EXAMPLES_FOLDER = os.path.join(os.path.dirname(__file__), "../../deploy/examples/models")
CLASSES = "sparse_categorical_crossentropy"
LOGITS = {"name": CLASSES, "from_logits": True}


class WholeModel(Case):
    """A model with random weights around those that Keras draws. Scales stay near 1, and variances above 0, so that
    the values of a deep model do not vanish or explode."""

    def __init__(self, make, losses=None, text=None, seed=1):
        self.make, self.losses, self.text = make, losses, text
        self.rng = np.random.default_rng(seed)
        keras.utils.set_random_seed(seed)
        self.model = self.build()
        for weight in self.model.weights:
            if "seed_generator" not in weight.path:
                most = 0.5 if "variance" in weight.path else 0.05
                weight.assign(np.asarray(weight) + self.rng.uniform(-most, most, weight.shape).astype(np.float32))
        self.weights = self.model.get_weights()
        self.arrays = self.examples()
        outputs = self.model([self.arrays[x.name] for x in self.model.inputs], training=False)
        self.outputs = [np.asarray(y) for y in listed(outputs)]
        self.losses = self.losses or ["mean_squared_error"] * len(self.outputs)
        self.labels = [self.labels_of(y, loss) for y, loss in zip(self.outputs, self.losses)]

    def is_smooth(self):
        """Returns whether a step from weights that differ as by rounding has nearly the same result. Otherwise, a ReLU or a
        maximum is so close to its kink that rounding, which differs between processors, decides its gradient."""
        weights, exact = self.weights, self.keras("float64")[1]
        shifts = [self.rng.uniform(-1e-6, 1e-6, w.shape) * np.abs(w).max(initial=0) if w.dtype == np.float32 else 0
                  for w in weights]
        smooth = True
        for sign in (1, -1):  # a kink within reach lies on one of the sides
            self.weights = [w if np.isscalar(shift) else w + sign * shift for w, shift in zip(weights, shifts)]
            shifted = self.keras("float64")[1]
            smooth &= not differences(shifted, exact, lambda: exact, STEP)
        self.weights = weights
        return smooth

    def build(self):
        keras.utils.clear_session()  # numbers the layers without names in the same way each time
        return self.make()

    def to_json(self):
        return self.text or super().to_json()

    def count_of_ids(self, tensor):
        """An input of ids has the size of the smallest table that it is passed to."""
        sizes = [layer.input_dim for layer in self.model.layers if isinstance(layer, L.Embedding)
                 for node in layer._inbound_nodes if any(x is tensor for x in node.input_tensors)]
        return min(sizes, default=None)

    def labels_of(self, output, loss):
        name = loss["name"] if isinstance(loss, dict) else loss
        if name == CLASSES:
            return self.rng.integers(0, output.shape[-1], output.shape[:-1]).astype(np.int32)
        if name == "binary_crossentropy":
            return self.rng.integers(0, 2, output.shape).astype(np.float32)
        return self.rng.standard_normal(output.shape).astype(np.float32)


def first_smooth(make):
    """Returns the first of make(1), make(2), … that is smooth, as most cases are."""
    for seed in range(1, 9):
        case = make(seed)
        if case.is_smooth():
            return case
    raise AssertionError(f"{case.model.name}: rounding decides a gradient with each of the seeds 1 to {seed}")


def from_manifest(path, seed):
    """Returns the case of an example: its model, as the manifest contains it, and its loss."""
    with open(path) as file:
        data = next(each["data"] for each in yaml.safe_load_all(file) if each["kind"] == "ConfigMap")
    keys = yaml.safe_load(data["training.yaml"])
    if "layers" not in keys["model"]:
        text = data["model.json"]
        in_floatx = lambda: text.replace('"float32"', f'"{keras.config.floatx()}"')
        return WholeModel(lambda: keras.models.model_from_json(in_floatx()), [keys["loss"]], text, seed)
    return WholeModel(lambda: from_layers(keys["model"]["layers"]), [keys["loss"]], seed=seed)


def from_layers(entries):
    layers = []
    for entry in entries:
        (name, given), = entry.items()
        given = dict(given or {})
        if name == "Dropout":
            given["rate"] = 0.0
        if name == "InputLayer":
            given["name"] = "images"  # Keras would number it
        layers.append(getattr(L, name)(**given))
    return keras.Sequential(layers, name="layers")


def residual():
    """Skip connections over one and over several layers, with and without a projection."""
    x = keras.Input((8, 9, 3), name="x")
    h = first = L.Conv2D(6, 3, padding="same", name="stem")(x)
    for block in range(3):
        y = L.LayerNormalization(name=f"norm_{block}")(h)
        y = L.Conv2D(6, 3, padding="same", activation="swish", name=f"wide_{block}")(y)
        h = L.Add()([h, L.Conv2D(6, 1, name=f"narrow_{block}")(y)])
    h = L.BatchNormalization(name="last")(L.Concatenate()([h, first, x]))
    h = L.Conv2D(8, 2, strides=2, name="down")(h) + L.AveragePooling2D(2)(L.Conv2D(8, 1, name="skip")(h))
    return keras.Model(x, L.Dense(4, activation="softmax", name="head")(L.GlobalAveragePooling2D()(h)), name="residual")


def twins():
    """Two images pass the same encoder, which is a Sequential model, and the same layers after it."""
    encoder = keras.Sequential([L.Conv2D(4, 3, activation="relu", name="conv"), L.MaxPooling2D(), L.Flatten(),
                                L.Dense(6, name="code")], name="encoder")
    shared, norm = L.Dense(5, activation="tanh", name="shared"), L.BatchNormalization(name="norm")
    left, right = keras.Input((8, 8, 2), name="left"), keras.Input((8, 8, 2), name="right")
    a, b = (norm(shared(encoder(image))) for image in (left, right))
    distance = ops.sqrt(ops.sum(ops.square(a - b), axis=-1, keepdims=True) + 0.1)
    same = L.Dense(1, activation="sigmoid", name="same")(L.Multiply()([a, b]))
    return keras.Model([left, right], [distance, same, L.Dot(axes=1, normalize=True)([a, b])], name="twins")


def several():
    """An image and a row lead to three outputs at different depths, with different losses."""
    image, row = keras.Input((6, 6, 2), name="image"), keras.Input((5,), name="row")
    h = L.SeparableConv2D(6, 3, padding="same", activation="elu", name="separable")(image)
    gate = L.Reshape((1, 1, 6))(L.Dense(6, activation="sigmoid", name="gate")(row))
    h = L.DepthwiseConv2D(3, name="depthwise")(h * gate)
    early = L.Conv2D(3, 1, activation="softmax", name="early")(h)
    flat = L.Concatenate()([L.GlobalMaxPooling2D()(h), L.Dense(4, activation="gelu", name="deep_row")(row)])
    late = L.Dense(2, name="late")(L.GroupNormalization(2, name="groups")(flat))
    return keras.Model([row, image], [late, early, L.Dense(4, name="logits")(flat)], name="several")


def nested():
    """A model within a model within a model. One of them is called twice, and one has two outputs."""
    a = keras.Input((5,), name="a")
    inner = keras.Model(a, [L.Dense(5, activation="tanh", name="one")(a), L.Dense(5, name="two")(a)], name="inner")
    b = keras.Input((5,), name="b")
    first, second = inner(b)
    third, fourth = inner(first * second)
    middle = keras.Model(b, L.Add()([first, fourth, L.Dense(5, name="three")(third)]), name="middle")
    tower = keras.Sequential([keras.Input((5,)), L.Dense(5, activation="relu", name="four"),
                              L.LayerNormalization(name="norm"), L.Dense(5, name="five")], name="tower")
    x = keras.Input((3, 5), name="x")
    each = L.TimeDistributed(L.Dense(5, activation="tanh", name="inside"), name="each")(x)
    y = middle(L.GlobalAveragePooling1D()(each))
    return keras.Model(x, [middle(y), tower(y)], name="nested")


def hourglass():
    """A U-Net: goes down and up again, with skip connections between equal sizes."""
    x = keras.Input((8, 12, 2), name="x")
    skips, h = [], x
    for level, filters in enumerate((4, 6)):
        h = L.Conv2D(filters, 3, padding="same", activation="relu", name=f"down_{level}")(h)
        h = L.BatchNormalization(name=f"norm_{level}")(h)
        skips.append(h)
        h = L.MaxPooling2D(2)(h)
    h = L.Conv2D(8, 3, padding="same", dilation_rate=2, activation="relu", name="bottom")(h)
    for level, skip in reversed(list(enumerate(skips))):
        h = L.Conv2DTranspose(skip.shape[-1], 2, strides=2, name=f"up_{level}")(h)
        h = L.Conv2D(4, 3, padding="same", activation="relu", name=f"joined_{level}")(L.Concatenate()([h, skip]))
    return keras.Model(x, L.Conv2D(3, 1, name="pixels")(h), name="hourglass")


def recommender():
    """Tables for ids, one of them shared, next to numbers and their products."""
    user, items = keras.Input((), dtype="int32", name="user"), keras.Input((4,), dtype="int32", name="items")
    last, numbers = keras.Input((1,), dtype="int32", name="last"), keras.Input((3,), name="numbers")
    table = L.Embedding(11, 6, name="table")
    history = L.GlobalAveragePooling1D()(table(items))
    now = L.Flatten()(table(last))
    who = L.Embedding(9, 6, name="users")(user)
    parts = [who, now, history]
    crossed = [L.Dot(axes=1)([parts[i], parts[j]]) for i in range(3) for j in range(i)]
    deep = L.Dense(8, activation="relu", name="deep_1")(L.Concatenate()([*parts, numbers]))
    deep = L.Dense(4, activation="relu", name="deep_2")(deep)
    wide = L.Dense(1, use_bias=False, name="wide")(L.Concatenate()([*crossed, numbers]))
    out = L.Activation("sigmoid", name="click")(L.Add()([wide, L.Dense(1, name="deep")(deep)]))
    return keras.Model([user, items, last, numbers], out, name="recommender")


def translator():
    """An encoder, whose states start a decoder, which attends to the encoder's outputs. Padding is masked."""
    source, target = keras.Input((7,), dtype="int32", name="source"), keras.Input((5,), dtype="int32", name="target")
    words = L.Embedding(12, 6, mask_zero=True, name="words")
    sides = L.Bidirectional(L.LSTM(4, return_sequences=True, name="side"), merge_mode="ave", name="sides")
    encoded = sides(words(source))
    encoded, h, c = L.LSTM(4, return_sequences=True, return_state=True, name="encoder")(encoded)
    decoded = L.LSTM(4, return_sequences=True, name="decoder")(words(target), initial_state=[h, c])
    context = L.Attention(use_scale=True, name="attention")([decoded, encoded])
    logits = L.TimeDistributed(L.Dense(12, name="letters"), name="logits")(L.Concatenate()([decoded, context]))
    tag = L.Dense(3, activation="softmax", name="tag")(L.GRU(4, name="summary")(encoded))
    return keras.Model([source, target], [logits, tag], name="translator")


def branches():
    """Parallel convolutions with windows of different sizes, and weights for channels that depend on their means."""
    x = keras.Input((16, 4), name="x")
    h = L.Conv1D(6, 5, strides=2, padding="same", activation="relu", name="stem")(x)
    for block in range(2):
        paths = [L.Conv1D(3, size, padding="same", activation="relu", name=f"size_{size}_{block}")(h)
                 for size in (1, 3, 5)]
        paths.append(L.Conv1D(3, 1, name=f"pooled_{block}")(L.MaxPooling1D(3, strides=1, padding="same")(h)))
        h = L.Concatenate()(paths)
        squeezed = L.Dense(4, activation="relu", name=f"squeeze_{block}")(ops.mean(h, axis=1, keepdims=True))
        h = h * L.Dense(12, activation="hard_sigmoid", name=f"excite_{block}")(squeezed)
    heads = L.MultiHeadAttention(2, 4, name="heads")(h, h, use_causal_mask=True)
    h = L.RMSNormalization(name="rms")(L.Add()([h, heads]))
    return keras.Model(x, [L.Dense(2, name="last")(h[:, -1]), ops.max(h, axis=1)], name="branches")


FUNCTIONAL = [
    (residual, [CLASSES]), (twins, ["mean_squared_error", "binary_crossentropy", "mean_squared_error"]),
    (several, ["mean_squared_error", CLASSES, LOGITS]), (nested, None), (hourglass, [LOGITS]),
    (recommender, ["binary_crossentropy"]), (translator, [LOGITS, CLASSES]), (branches, None)]


class WholeModels(unittest.TestCase):
    def setUp(self):
        warnings.simplefilter("ignore")  # Keras warns of lists of one input

    def check(self, case):
        """Compares the outputs and the variables after a step, for both forms of the model."""
        exact, after = case.keras("float64")
        for y in exact:  # a model whose output hardly depends on its weights would prove nothing
            self.assertGreater(np.ptp(y), 1e-3)
            self.assertTrue(np.isfinite(y).all() and np.abs(y).max() < 100)
        self.assertEqual({len(y) for y in exact}, {EXAMPLES})
        with tempfile.TemporaryDirectory() as folder:
            case.write(folder)
            for form in FORMS:
                check_exact(self, numbered(case.predict(folder, form)), numbered(exact),
                            lambda: numbered(case.keras("float32")[0]), PREDICTION, f"outputs, {form}")
                check_exact(self, case.step(folder, form), after, lambda: case.keras("float32")[1], STEP,
                            f"variables after a step, {form}")
        before = variables(case.model)  # in float32, as drawn
        moved = [name for name, value in after.items() if np.abs(value - before[name]).max() > 10 * STEP]
        self.assertGreater(len(moved), len(after) / 3, "the step is too small to be compared")

    def test_examples(self):
        paths = sorted(glob.glob(f"{EXAMPLES_FOLDER}/*.yaml"))
        self.assertEqual(len(paths), 8)
        for path in paths:
            with self.subTest(example=re.sub(r".*/|\.yaml$", "", path)):
                self.check(first_smooth(lambda seed: from_manifest(path, seed)))

    def test_functional_models(self):
        for make, losses in FUNCTIONAL:
            with self.subTest(model=make.__name__):
                self.check(first_smooth(lambda seed: WholeModel(make, losses, seed=seed)))
