"""Compares the file formats and the arithmetic of the runtime with TensorFlow, Keras and
TensorBoard.

run.sh runs it. trainer_test.py tests the files that the trainer writes."""
import json
import os
import tempfile
import unittest

from harness import (PREDICTION, STEP, as_array, as_json, check_exact, in_double, in_type, listed, numbered,
                     scalars, tool)

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


def variables(model, prefix=""):
    """Returns the weights of a model, by the names that the runtime uses."""
    found = {}
    for layer in model.layers:
        found.update(variables_of(layer, f"{prefix}{layer.name}/"))
    return found


def variables_of(layer, prefix):
    """Returns the weights of a layer by name. The names start with the prefix."""
    if hasattr(layer, "layers"):
        return variables(layer, prefix)
    inner = layer.layer if type(layer).__name__ == "TimeDistributed" else None
    if hasattr(inner, "layers") or type(inner).__name__ == "TimeDistributed":
        return variables_of(inner, f"{prefix}{inner.name}/")
    found = {}
    for weight in layer.weights:
        path = (getattr(weight, "path", None) or weight.name).split(":")[0]
        name = path.split("/")[-1]
        if "Attention" in type(layer).__name__:
            name = path.split(f"{layer.name}/")[-1]
        if hasattr(layer, "cell") or hasattr(layer, "forward_layer") or inner is not None:
            name = path.split(f"{layer.name}/", 1)[-1].replace("backward_rear", "rear")  # lacks it if read
            start = inner.name if inner is not None else ""
            name = name if name.startswith(start) else f"{start}/{name}"  # tf.keras 2 omits it
        if type(layer).__name__.startswith("ConvLSTM") and "/" not in name:
            name = f"conv_lstm_cell/{name}"  # tf.keras 2 omits the cell
        if name == "depthwise_kernel" and "Separable" not in type(layer).__name__:
            name = "kernel"  # its name in Keras 3; tf.keras 2 has another
        found[f"{prefix}{name}"] = np.asarray(weight)
    return found


def paths(model, weights):
    """Returns the paths of the weights. In Keras, the paths start with the name of a Sequential
    model only if the model was built from tensors."""
    return [weight.path.removeprefix(f"{model.name}/") for weight in weights]


def values(array):
    return {"shape": list(array.shape), "values": array.reshape(-1).tolist()}


def randomize(model, rng, most):
    """Sets every weight to a value other than the usual 0 or 1. Variances stay above 0."""
    for weight in model.weights:
        shift = rng.uniform(0, most, weight.shape).astype(np.float32)
        weight.assign(np.asarray(weight) + shift)


def functional(library):
    """Returns models that are not just chains of layers."""
    L = library.layers
    a, b = library.Input((6,), name="a"), library.Input((6,), name="b")
    shared = L.Dense(5, activation="tanh", name="shared")
    inner_in = library.Input((5,), name="inner_in")
    inner = library.Model(inner_in, L.Add(name="skip")([inner_in, L.Dense(5, name="deep")(inner_in)]), name="inner")
    x = L.BatchNormalization(name="norm", momentum=0.9, epsilon=0.01)(L.Add(name="sum")([shared(a), shared(b)]))
    y = L.LayerNormalization(name="layer_norm")(inner(x))
    z = L.Multiply(name="product")([x, y])
    towers = library.Model([a, b], [L.Dense(2, name="first")(z), L.Dense(3, name="second")(L.Subtract()([y, x]))],
                           name="towers")
    image = library.Input((4, 3, 2), name="image")
    h = L.BatchNormalization(axis=2, center=False, name="rows")(image)
    h = L.LayerNormalization(axis=[1, 3], scale=False, name="planes")(h)
    h = L.Permute((3, 1, 2))(h)
    h = L.ReLU(max_value=1.5, negative_slope=0.2, threshold=0.1)(h)
    h = L.Maximum()([h, L.Rescaling(0.5, offset=-0.25)(h)])
    h = L.Average()([h, L.Minimum()([h, L.Permute((1, 2, 3))(h)]), h])
    flat = L.Dense(4, name="flat")(L.Flatten()(h))
    repeated = L.Add()([L.RepeatVector(3)(flat), L.Reshape((3, 4))(L.Dense(12, name="wide")(flat))])
    frozen = L.Dense(2, name="frozen")
    frozen.trainable = False
    stopped = L.BatchNormalization(name="stopped")
    stopped.trainable = False
    shapes = library.Model(image, stopped(frozen(repeated)), name="shapes")
    c = library.Input((5,), name="c")
    block_in = library.Input((5,), name="block_in")
    block = library.Model(block_in, L.Dense(5, activation="tanh", name="block_dense")(block_in), name="block")
    once = block(c)
    twice = library.Model(c, [once, block(once)], name="twice")  # the outputs are those of a nested model
    scores, mask = library.Input((3, 4), name="scores"), library.Input((1, 4), name="mask")
    rows = L.Softmax(name="masked")(L.Dense(4, name="deep_scores")(scores), mask=mask)
    softmax = library.Model([scores, mask], L.Softmax(axis=[1, 2])(L.Add()([L.Softmax(axis=1)(scores), rows])),
                            name="softmax")
    # tf.keras 2 computes different results for masks with values other than 0 and 1.
    return [towers, shapes, twice] + ([softmax] if library is keras else [])


def images(library):
    """Returns models of images and rows, which together use every argument of their layers. The
    last model uses arguments with which TensorFlow cannot train on a CPU."""
    L = library.layers
    image = library.Input((9, 8, 4), name="image")
    h = L.Conv2D(6, 3, padding="same", activation="relu", name="plain")(image)
    h = L.Conv2D(5, (2, 3), strides=(2, 1), use_bias=False, name="strided")(h)
    h = L.Conv2D(4, 3, padding="same", dilation_rate=(2, 1), activation="tanh", name="dilated")(h)
    h = L.Concatenate()([h, L.DepthwiseConv2D(3, padding="same", depth_multiplier=2, name="depthwise")(h)])
    h = L.SeparableConv2D(6, (2, 3), padding="same", depth_multiplier=2, activation="sigmoid", name="separable")(h)
    h = L.Conv2DTranspose(4, (3, 2), strides=(2, 3), padding="same", name="up_same")(h)
    h = L.Conv2DTranspose(3, (2, 4), strides=(3, 2), use_bias=False, name="up_valid")(h)
    h = L.ZeroPadding2D(((1, 2), (0, 3)))(L.Cropping2D(((3, 1), (2, 5)))(h))
    h = L.MaxPooling2D((3, 2), strides=(2, 1), padding="same")(h)
    h = L.AveragePooling2D(3, strides=2, padding="same")(h)
    h = L.Concatenate(axis=1)([h, h])
    pooled = [L.GlobalMaxPooling2D()(h), L.GlobalAveragePooling2D()(h), L.Flatten()(L.GlobalMaxPooling2D(keepdims=True)(h)),
              L.Flatten()(L.GlobalAveragePooling2D(keepdims=True)(h)),
              L.Flatten()(L.AveragePooling2D(2)(L.MaxPooling2D()(h)))]
    planes = library.Model(image, L.Dense(3, name="planes_head")(L.Concatenate()(pooled)), name="planes")
    row = library.Input((12, 4), name="row")
    r = L.Conv1D(6, 3, padding="causal", dilation_rate=2, activation="relu", name="causal")(row)
    r = L.Conv1D(5, 4, strides=2, padding="same", name="row_strided")(r)
    r = L.Concatenate()([r, L.DepthwiseConv1D(2, padding="same", name="row_depthwise")(r)])
    r = L.SeparableConv1D(6, 3, padding="same", depth_multiplier=2, name="row_separable")(r)
    r = L.Conv1DTranspose(4, 3, strides=2, padding="same", name="row_up")(r)
    r = L.Cropping1D((1, 2))(L.ZeroPadding1D((2, 3))(L.UpSampling1D(2)(r)))
    r = L.AveragePooling1D(3, strides=2, padding="same")(L.MaxPooling1D(2, strides=1)(r))
    ends = [L.GlobalMaxPooling1D()(r), L.GlobalAveragePooling1D()(r), L.Flatten()(L.AveragePooling1D(2)(r)),
            L.Flatten()(L.MaxPooling1D()(r))]
    rows = library.Model(row, L.Dense(2, name="rows_head")(L.Concatenate()(ends)), name="rows")
    tutorial = library.Sequential([
        library.Input((14, 14, 1)), L.Conv2D(8, 3, activation="relu", name="first"), L.MaxPooling2D(),
        L.Conv2D(16, 3, activation="relu", name="second"), L.Flatten(), L.Dense(10, name="logits")], name="tutorial")
    g = L.UpSampling2D((2, 3))(image)
    g = L.Conv2D(6, 3, groups=2, activation="relu", name="grouped")(g)
    untrained = library.Model(image, L.ZeroPadding2D(2)(L.Cropping2D(1)(g)), name="untrained")
    return [planes, rows, tutorial, untrained]


def recurrent(library):
    """Returns models with recurrent layers, which together use every argument of their layers."""
    L = library.layers
    padded = library.Sequential([
        library.Input((6, 4)), L.Masking(name="masking"),
        L.Bidirectional(L.LSTM(3, return_sequences=True, name="both"), name="first"),
        L.GRU(4, return_sequences=True, go_backwards=True, name="back"),
        L.TimeDistributed(L.Dense(3, name="each"), name="steps"),
        L.SimpleRNN(3, return_sequences=True, name="simple"), L.Dropout(0.0),
        L.LSTM(5, name="last", unit_forget_bias=False), L.Dense(2, name="padded_head")], name="padded")
    x, y = library.Input((5, 3), name="x"), library.Input((4, 2), name="y")
    encoded, h, c = L.LSTM(4, return_state=True, return_sequences=True, name="encoder")(x)
    decoded = L.LSTM(4, return_sequences=True, activation="relu", recurrent_activation="tanh", name="decoder")(
        y, initial_state=[h, c])
    gru, state = L.GRU(3, return_state=True, reset_after=False, name="before")(encoded)
    after = L.GRU(3, use_bias=False, name="no_bias")(decoded, initial_state=state)
    plain = L.SimpleRNN(3, use_bias=False, activation="linear", unroll=True, name="plain")(encoded)
    sides = L.Bidirectional(L.GRU(2, return_sequences=True, return_state=True, name="side"), merge_mode=None,
                            name="sides")(encoded)
    pairs = [L.Bidirectional(L.LSTM(3, name=f"pair_{mode}"), merge_mode=mode, name=f"by_{mode}")(encoded)
             for mode in ("sum", "mul", "ave", "concat")]
    other = L.Bidirectional(L.SimpleRNN(2, return_sequences=True, name="front"), name="different",
                            backward_layer=L.SimpleRNN(2, return_sequences=True, go_backwards=True, name="rear"))(y)
    ends = [gru, after, plain, *pairs, L.Flatten()(other), *[L.Flatten()(side) for side in sides]]
    states = library.Model([x, y], [L.Dense(3, name="states_head")(L.Concatenate()(ends)), decoded], name="states")
    images = library.Input((3, 6, 4), name="images")
    rows = L.TimeDistributed(L.Conv1D(4, 2, name="conv"), name="convs")(images)
    rows = L.TimeDistributed(L.LSTM(3, name="row_lstm"), name="lstms")(rows)
    rows = library.Model(images, L.GRU(2, name="top")(rows), name="rows_of_rows")
    return [padded, states, rows]


def attention(library):
    """Returns models with attention, including a block of a transformer's encoder."""
    L = library.layers
    a_in, b = library.Input((5, 8), name="a"), library.Input((7, 6), name="b")
    h = L.MultiHeadAttention(2, 3, name="self")(a_in, a_in)
    a = L.LayerNormalization(name="first_norm")(L.Add()([a_in, h]))
    h = L.Dense(8, name="down")(L.Dense(16, activation="gelu", name="up")(a))
    encoded = L.LayerNormalization(name="second_norm")(L.Add()([a, h]))
    h = L.MultiHeadAttention(2, 4, value_dim=3, output_shape=6, use_bias=False, name="cross")(encoded, b)
    h = L.MultiHeadAttention(1, 2, name="causal")(h, b, key=L.Dense(3, name="keys")(b), use_causal_mask=True)
    steps = L.Dense(6, name="steps")(L.Masking()(L.ReLU(threshold=1.0)(b)))  # has a mask
    rows = [L.Attention(use_scale=True, score_mode="concat", name="concat")([h, steps], use_causal_mask=True),
            L.Attention(name="dot_attention")([h, b, L.Dense(6, name="dot_keys")(b)]),
            L.AdditiveAttention(name="additive")([h, steps])]
    # Keras 3 removes the masks from the values that are passed to a MultiHeadAttention, so pass a new value to each of
    # these layers.
    padded = [L.Masking()(L.ReLU(threshold=0.9)(b)) for _ in range(2)]
    masked = L.MultiHeadAttention(2, 2, name="masked")(h, padded[0])
    # Permute does not pass the mask on.
    query = L.Permute((1, 2))(L.MultiHeadAttention(2, 2, name="masked_query")(padded[1], h))
    h = L.Add()([h, L.Attention(name="of_masked")([h, query])])
    rows.append(h)
    out = L.Concatenate()([*rows, masked])
    first, second = L.Dense(1, name="first_head")(out), L.Dot(axes=(2, 2), normalize=True)([out, out])
    transformer = library.Model([a_in, b], [first, second], name="transformer")
    x = library.Input((4, 6), name="x")
    h = L.EinsumDense("abc,cde->abde", output_shape=(4, 2, 5), bias_axes="e", activation="tanh", name="parts")(x)
    h = L.GroupNormalization(groups=5, name="groups")(h)
    h = L.EinsumDense("...de,def->...f", output_shape=6, name="joined")(h)
    h = L.EinsumDense("ab...,bc->ac...", output_shape=(4,), bias_axes="c", name="over_steps")(h)
    h = L.Identity()(L.Normalization(mean=[.1, .2, .3, .4, .5, .6], variance=[1, 2, 3, 4, 5, 6.])(h))
    h = L.Add()([h, L.UnitNormalization(axis=[1, 2])(h), L.Normalization(axis=None, mean=1., variance=2., invert=True)(h)]
                if library is keras else [h, L.UnitNormalization(axis=[1, 2])(h)])
    h = L.AlphaDropout(0.0)(L.SpatialDropout1D(0.0)(h))
    h = L.GroupNormalization(groups=2, axis=1, scale=False, name="step_groups")(h)
    if library is keras:
        h = L.RMSNormalization(name="rms")(h)
    plain = library.Model(x, h, name="plain")
    return [transformer, plain]


def operations():
    """Returns a model that calls the functions of keras.ops."""
    L, ops = keras.layers, keras.ops
    x, y = keras.Input((4, 6), name="x"), keras.Input((4, 6), name="y")
    product = ops.matmul(x, ops.transpose(y, (0, 2, 1)))
    gates = ops.split(L.Dense(8, name="gates")(x), 2, axis=-1)
    flat = [x + y, x * 2.0, 1 - x, x / (ops.abs(y) + 1), x**2, ops.power(ops.exp(x), 0.5), -x, ops.maximum(x, 0.0),
            ops.minimum(x, y), ops.where(x > y, x, 0.5), ops.where(x <= y, y, x),
            ops.clip(x, -0.5, 1), ops.cast(ops.cast(x, "int32"), "float32"), ops.sqrt(ops.square(x) + 1),
            ops.log(ops.abs(x) + 2), ops.tanh(x), ops.rsqrt(ops.exp(x)), ops.erf(x), ops.sin(x), ops.cos(x),
            ops.relu(x), ops.relu6(x), ops.sigmoid(x), ops.silu(x), ops.softplus(x), ops.gelu(x), ops.gelu(x, approximate=False),
            ops.leaky_relu(x, 0.3), ops.softmax(x, axis=1), product, gates[0] * ops.sigmoid(gates[1]),
            ops.stack([x, y], axis=1), ops.concatenate([x, y], axis=1), ops.reshape(x, (-1, 3, 8)),
            ops.swapaxes(x, 1, 2), ops.squeeze(ops.expand_dims(x, 1), 1), x[:, 0], x[:, -1:, ::2], x[:, 1:3, 1::3],
            x[..., None], x[:, None, 2], ops.mean(x, axis=1), ops.sum(x, axis=(1, 2), keepdims=True),
            ops.max(x, axis=-1), ops.min(x, axis=[1, 2], keepdims=True), ops.einsum("abc,adc->abd", x, y),
            ops.einsum("abc,abc->ab", x, y)]
    whole = ops.cast(x * 10, "int32")
    flat += [ops.floor(x * 3), ops.ceil(x * 3), ops.round(x * 4), ops.round(ops.floor(x * 3) / 2), ops.round(x, 1),
             ops.sign(x), x % 0.7, x % -0.7, 3.0 % (ops.abs(y) + 0.5), ops.mod(x, y), x // 0.7, y // -0.3, ops.log1p(ops.square(x)), ops.expm1(x), ops.prod(x, axis=1), ops.prod(x, axis=(2, 1), keepdims=True),
             ops.norm(x, axis=-1), ops.norm(x, ord=1, axis=1, keepdims=True), ops.norm(x, ord=3, axis=1),
             ops.norm(x, axis=(1, 2)), ops.slice(x, (0, 1, 2), (-1, 2, 3)), ops.slice(x, [0, 0, 1], [-1, -1, 1]),
             x[:, ::-1], x[:, 3:0:-2, ::-2], x[..., -2:0:-3], *ops.split(x, [1, 3], axis=1),
             ops.split(x, [2], axis=-1)[0], ops.take(x, [2, 0, -1], axis=1),
             ops.take(x, np.array([[0], [5]]), axis=2), ops.take(x, 1, axis=-1)]
    flat += [ops.cast(value, x.dtype) for value in [
        ops.argmin(x, axis=1), ops.argmin(x, axis=-1, keepdims=True),
        ops.count_nonzero(ops.relu(x), axis=1), whole % 3,
        whole % -3, whole // 4, whole // -4, ops.sign(whole), ops.floor(whole), ops.round(whole),
        ops.prod(whole, axis=2), ops.prod(x > 0, axis=1), ops.take(whole, [3, 1], axis=1)]]
    flat = [L.Flatten()(value) for value in flat]
    return keras.Model([x, y], L.Dense(3, name="head")(ops.concatenate(flat, axis=-1)), name="operations")


def tensorflow_functions():
    """Returns a model of tf.keras 2 that calls functions of TensorFlow on its values, in the type of floatx."""
    L = tf_keras.layers
    x, y = tf_keras.Input((4, 6), name="x"), tf_keras.Input((4, 6), name="y")
    first, second = tf.split(L.Dense(8, name="halves")(x), 2, axis=-1)
    whole, large = tf.cast(x * 3.0, tf.int32), 2**24  # the sums below differ by 1, which float32 cannot represent
    offsets = [tf.constant([large + step] * 6) for step in (0, 1)]
    flat = [x + y, x * 2.0, 1 - x, x / (tf.abs(y) + 1), -x, x**2, x @ tf.transpose(y, [0, 2, 1]), first * tf.sigmoid(second),
            x * tf.constant([1.0, 2, 3, 4, 5, 6], x.dtype),
            tf.nn.bias_add(x, tf.constant([0.1, 0.2, 0.3, 0.4, 0.5, 0.6], x.dtype)),
            x[:, 0], x[:, 1:3, None], x[..., ::2], tf.reshape(x, [-1, 3, 8]), tf.concat([x, y], axis=1),
            tf.stack([x, y], axis=1), tf.expand_dims(x, -1), tf.squeeze(tf.expand_dims(x, 1), 1), tf.tile(x, [1, 2, 3]),
            tf.pad(x, [[0, 0], [1, 2], [0, 0]]), tf.reverse(x, [1]), tf.roll(x, 1, axis=2), tf.where(x > y, x, y),
            tf.cast(tf.logical_and(x > 0, tf.logical_not(y > 0)), tf.float32), tf.maximum(x, y), tf.minimum(x, 0.2),
            tf.clip_by_value(x, -0.5, 1.0), tf.sin(x), tf.cos(x), tf.square(x), tf.sqrt(tf.exp(x)),
            tf.math.rsqrt(tf.exp(x)), tf.math.log(tf.abs(x) + 1),
            tf.nn.relu(x), tf.nn.relu6(x), tf.nn.elu(x), tf.nn.selu(x), tf.nn.silu(x), tf.nn.gelu(x), tf.nn.leaky_relu(x),
            tf.nn.softmax(x), tf.nn.softmax(x, axis=1), tf.nn.log_softmax(x), tf.nn.softplus(x), tf.tanh(x), tf.identity(x),
            tf.math.l2_normalize(tf.nn.relu(L.Dense(2, name="units")(x)), axis=-1),  # also of rows of zeros
            tf.one_hot(tf.argmax(x, axis=-1), 6), tf.reduce_mean(x, axis=1),
            tf.reduce_sum(x, axis=[1, 2], keepdims=True), tf.reduce_max(x, axis=-1), tf.math.reduce_std(x, axis=1),
            tf.math.reduce_variance(x, axis=1), tf.reduce_logsumexp(x, axis=1), tf_keras.backend.mean(x, axis=2),
            tf.cast((whole + offsets[1]) - (whole + offsets[0]), tf.float32)]
    out = L.Dense(3, name="head")(tf.concat([L.Flatten()(value) for value in flat], axis=-1))
    return tf_keras.Model([x, y], out, name="functions")


def volumes(library):
    """Returns a model with layers of volumes, pooling to a fixed size, and recurrent layers of images."""
    L = library.layers
    volume = library.Input((5, 6, 4, 3), name="volume")
    h = L.Conv3D(4, (3, 2, 2), padding="same", activation="relu", name="plain")(volume)
    h = L.Conv3D(4, (2, 3, 1), strides=(2, 1, 1), name="strided")(h)
    h = L.Conv3D(2, 2, dilation_rate=(1, 2, 1), padding="same", use_bias=False, name="dilated")(h)
    h = L.Conv3DTranspose(3, (3, 2, 4), strides=(2, 3, 2), padding="same", name="up_same")(h)
    h = L.Conv3DTranspose(2, (4, 1, 2), strides=(3, 1, 1), name="up_valid")(h)
    h = L.ZeroPadding3D(((1, 0), (0, 2), (1, 1)))(L.Cropping3D(((1, 2), (0, 1), (2, 0)))(h))
    h = L.AveragePooling3D(2, strides=2, padding="same")(L.UpSampling3D((1, 2, 1))(L.SpatialDropout3D(0.0)(h)))
    # Many elements of h differ only by rounding errors, so the gradient of their maximum is ill-defined.
    distinct = L.Conv3D(3, 2, name="distinct")(volume)
    ends = [L.GlobalMaxPooling3D()(distinct), L.GlobalAveragePooling3D()(h),
            L.Flatten()(L.MaxPooling3D((2, 3, 2), strides=(1, 2, 1), padding="same")(distinct))]
    if library is keras:  # tf.keras 2 has no adaptive pooling
        plane = L.Reshape((30, 4, 3))(volume)
        ends += [L.Flatten()(L.AdaptiveAveragePooling3D((2, 2, 3))(h)), L.Flatten()(L.AdaptiveMaxPooling3D((3, 2, 2))(distinct)),
                 L.Flatten()(L.AdaptiveAveragePooling2D((4, 3))(plane)), L.Flatten()(L.AdaptiveMaxPooling2D((7, 2))(plane))]
    # The default of tf.keras 2 is its own hard_sigmoid, a different function, which is not supported.
    gate = "hard_sigmoid" if library is keras else "sigmoid"
    frames, *states = L.ConvLSTM2D(3, (3, 2), padding="same", return_sequences=True, return_state=True,
                                   recurrent_activation="sigmoid", name="frames")(volume)
    ends += [L.Flatten()(L.ConvLSTM2D(3, 2, padding="same", go_backwards=True, recurrent_activation=gate,
                                      name="later")(frames, initial_state=states))]
    ends += [L.Flatten()(L.ConvLSTM1D(2, 3, strides=2, use_bias=False, activation="relu", return_sequences=True,
                                      recurrent_activation="sigmoid", name="rows")(L.Reshape((5, 24, 3))(volume)))]
    if library is keras:
        row = L.Reshape((30, 12))(volume)
        ends += [L.Flatten()(L.AdaptiveAveragePooling1D(7)(row)), L.Flatten()(L.AdaptiveMaxPooling1D(5)(row))]
    return library.Model(volume, L.Dense(2, name="volumes_head")(L.Concatenate()(ends)), name="volumes")


# The activations that both libraries have and compute in the same way, and those that only Keras 3
# has.
ACTIVATIONS = ["linear", "relu", "sigmoid", "tanh", "softmax", "elu", "exponential", "gelu", "selu", "swish", "softplus",
               "softsign", "mish"]
KERAS_3_ACTIVATIONS = ["celu", "hard_shrink", "hard_sigmoid", "hard_silu", "hard_swish", "hard_tanh", "leaky_relu",
                       "log_sigmoid", "log_softmax", "relu6", "silu", "soft_shrink", "sparse_plus", "sparse_sigmoid",
                       "sparsemax", "squareplus", "tanh_shrink"]


def curves(library):
    """Returns a model that applies every activation, by name and as a layer."""
    L = library.layers
    names = ACTIVATIONS + (KERAS_3_ACTIVATIONS if library is keras else [])
    x = library.Input((6,), name="x")
    h = [L.Dense(6, name=f"dense_{name}")(x) for name in names]
    h = [L.Activation(name)(L.Rescaling(0.5 if name == "exponential" else 2.0)(value)) for name, value in zip(names, h)]
    h += [L.Dense(4, activation=name, name=f"direct_{name}")(x) for name in ("gelu", "softplus", "selu")]
    slope = "negative_slope" if library is keras else "alpha"
    h += [L.LeakyReLU(**{slope: 0.15})(x), L.ELU(0.7)(x), L.PReLU(name="own")(x)]
    rows = L.PReLU(shared_axes=[1], name="shared_slope")(L.Reshape((2, 3))(x))
    return library.Model(x, L.Concatenate()([*h, L.Flatten()(rows)]), name="curves")


def double_of(library, model):
    """Returns a copy of a model that computes in float64. Call this function in in_type."""
    if model.name != "functions":
        return in_double(library, model)
    copy = tensorflow_functions()  # in JSON, constants have no type, so tf.keras would read them as float32
    copy.set_weights(model.get_weights())
    return copy


class Models(unittest.TestCase):
    """Checks that a model in the JSON of Keras 3 or of tf.keras 2 yields the same outputs as in
    Keras, and the same weights after a step."""

    def request(self, folder, model, inputs):
        prefix = os.path.join(folder, "weights")
        tool("write-checkpoint", {"prefix": prefix, "tensors": {k: as_json(v) for k, v in variables(model).items()}})
        return {"model": model.to_json(), "prefix": prefix, "inputs": [values(x) for x in inputs]}

    def check(self, library, model, inputs):
        """Compares the outputs with those of Keras in float64."""
        outputs = lambda model: numbered(model(inputs if len(inputs) > 1 else inputs[0]))
        exact = in_type("float64", lambda: outputs(double_of(library, model)), library)
        with tempfile.TemporaryDirectory() as folder:
            got = tool("predict", self.request(folder, model, inputs))
        check_exact(self, numbered(got), exact, lambda: outputs(model), PREDICTION, model.name)

    def check_step(self, library, model, inputs, rng):
        """Compares the variables after a step with those of Keras in float64."""
        outputs = listed(model(inputs if len(inputs) > 1 else inputs[0]))
        labels = [rng.random(tuple(y.shape), dtype=np.float32) for y in outputs]
        with tempfile.TemporaryDirectory() as folder:
            request = self.request(folder, model, inputs)
            got = tool("train-step", request | {"labels": [values(y) for y in labels], "learning_rate": 0.1})

        def after(model):
            model.compile(optimizer=library.optimizers.SGD(0.1), loss=["mse"] * len(labels), run_eagerly=True)
            floatx = library.backend.floatx()
            x, y = [part.astype(floatx) for part in inputs], [part.astype(floatx) for part in labels]
            model.train_on_batch(x if len(x) > 1 else x[0], y if len(y) > 1 else y[0])
            return {name: np.float64(value) for name, value in variables(model).items()}

        exact = in_type("float64", lambda: after(double_of(library, model)), library)
        check_exact(self, got, exact, lambda: after(model), STEP, model.name)

    def check_chain(self, library):
        layers = library.layers
        model = library.Sequential([
            layers.InputLayer(**self.INPUT[library.__name__]), layers.Flatten(),
            layers.Dense(64, activation="relu"), layers.Dropout(0.3), layers.Reshape((8, 8)),
            layers.Flatten(), layers.Dense(32, activation="tanh", use_bias=False), layers.Dense(16), layers.ReLU(),
            layers.Dense(24), layers.Activation("tanh"), layers.Dense(16, activation="sigmoid"), layers.Dense(10),
            layers.Softmax()])
        self.check(library, model, [np.random.default_rng(5).random((9, 12, 7), dtype=np.float32)])

    INPUT = {"keras": {"shape": (12, 7)}, "tf_keras": {"input_shape": (12, 7)}}

    def test_keras_3(self):
        self.check_chain(keras)

    def test_tf_keras_2(self):
        self.check_chain(tf_keras)

    def check_graphs(self, library, steps):
        rng = np.random.default_rng(7)
        # Sums over a window have many terms, so the values would explode with larger weights.
        models = [(model, 0.5) for model in [*functional(library), *attention(library)]]
        models += [(model, 0.05) for model in [*images(library), curves(library)]]
        models += [(model, 0.3) for model in recurrent(library)]
        models += [(operations() if library is keras else tensorflow_functions(), 0.1), (volumes(library), 0.05)]
        for model, most in models:
            with self.subTest(model=model.name):
                randomize(model, rng, most)
                inputs = [rng.standard_normal((8, *x.shape[1:])).astype(np.float32) for x in model.inputs]
                if model.name == "padded":
                    for length, example in enumerate(inputs[0]):
                        example[length % 7:] = 0  # every step of one example is masked
                self.check(library, model, inputs)
                if (steps and model.name != "untrained") or model.name in ("functions", "volumes"):
                    self.check_step(library, model, inputs, rng)

    def test_graphs_of_keras_3(self):
        self.check_graphs(keras, steps=True)

    # The steps of most of these models are not compared, because the fused batch normalization of tf.keras 2 computes a
    # different moving variance.
    def test_graphs_of_tf_keras_2(self):
        self.check_graphs(tf_keras, steps=False)

    def test_keras_3_reads_what_we_write_for_functions_of_tensorflow(self):
        model = tensorflow_functions()
        again = keras.models.model_from_json(json.dumps(tool("rewrite", {"model": model.to_json()})))
        again.set_weights(model.get_weights())
        inputs = [np.random.default_rng(3).standard_normal((2, 4, 6)).astype(np.float32) for _ in range(2)]
        np.testing.assert_allclose(again(inputs), model(inputs), rtol=0, atol=1e-5)

    def test_keras_reads_the_graphs_that_we_write(self):
        for model in [*functional(keras), *attention(keras), *images(keras), curves(keras), *recurrent(keras),
                      operations(), volumes(keras)]:
            with self.subTest(model=model.name):
                again = keras.models.model_from_json(json.dumps(tool("rewrite", {"model": model.to_json()})))
                same = keras.models.model_from_json(model.to_json())  # paths of wrapped layers lack the wrapper's name
                self.assertEqual(paths(again, again.weights), paths(same, same.weights))
                self.assertEqual(paths(again, again.trainable_weights), paths(same, same.trainable_weights))
                again.set_weights(model.get_weights())
                inputs = [np.ones((2, *x.shape[1:]), np.float32) for x in model.inputs]
                inputs = inputs if len(inputs) > 1 else inputs[0]
                for got, wanted in zip(keras.tree.flatten(again(inputs)), keras.tree.flatten(model(inputs))):
                    np.testing.assert_array_equal(got, wanted)


# The decays are so short that each schedule ends, jumps or restarts within the steps of the test.
SCHEDULES = [
    ("exponential_decay", {"decay_steps": 3, "decay_rate": 0.7}),
    ("exponential_decay", {"decay_steps": 2, "decay_rate": 0.5, "staircase": True}),
    ("inverse_time_decay", {"decay_steps": 3, "decay_rate": 0.9}),
    ("inverse_time_decay", {"decay_steps": 2, "decay_rate": 0.9, "staircase": True}),
    ("polynomial_decay", {"decay_steps": 3, "end_learning_rate": 0.01, "power": 2.0}),
    ("polynomial_decay", {"decay_steps": 2, "end_learning_rate": 0.01, "cycle": True}),
    ("cosine_decay", {"decay_steps": 3, "alpha": 0.1}),
    ("cosine_decay", {"decay_steps": 3, "warmup_target": 0.4, "warmup_steps": 2}),
    ("cosine_decay_restarts", {"first_decay_steps": 1, "alpha": 0.1, "m_mul": 0.7}),
    ("cosine_decay_restarts", {"first_decay_steps": 2, "t_mul": 1.0}),
    ("piecewise_constant_decay", {"boundaries": [0, 2], "values": [0.5, 0.2, 0.1]}),
]


def schedule(name, given):
    """Returns Keras' schedule with this name. The initial learning rate is 0.1 if the schedule has
    one."""
    make = getattr(keras.optimizers.schedules, "".join(word.title() for word in name.split("_")))
    return make(**given) if "values" in given else make(0.1, **given)


def ours(given):
    return {"decay_steps" if key == "first_decay_steps" else key: value for key, value in given.items()}


FTRL = {"learning_rate": 0.05, "learning_rate_power": -0.7, "initial_accumulator_value": 0.2,
        "l1_regularization_strength": 0.3, "l2_regularization_strength": 0.2,
        "l2_shrinkage_regularization_strength": 0.1, "beta": 0.4}
# Options of every optimizer.
COMMON = [
    {"weight_decay": 0.3},
    {"use_ema": True, "ema_momentum": 0.6, "ema_overwrite_frequency": 2},
    {"gradient_accumulation_steps": 2, "weight_decay": 0.3},
    {"gradient_accumulation_steps": 2, "use_ema": True, "ema_momentum": 0.6, "ema_overwrite_frequency": 2},
]


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
        ({"kind": "adam", "amsgrad": True}, lambda: keras.optimizers.Adam(amsgrad=True)),
        ({"kind": "adamw"}, keras.optimizers.AdamW),
        ({"kind": "nadam"}, keras.optimizers.Nadam),
        ({"kind": "adamax"}, keras.optimizers.Adamax),
        ({"kind": "adadelta"}, keras.optimizers.Adadelta),
        ({"kind": "adadelta", "learning_rate": 1.0}, lambda: keras.optimizers.Adadelta(1.0)),
        ({"kind": "ftrl", "learning_rate": 0.05}, lambda: keras.optimizers.Ftrl(0.05)),
        ({"kind": "ftrl", **FTRL}, lambda: keras.optimizers.Ftrl(**FTRL)),
        ({"kind": "lion"}, keras.optimizers.Lion),
        *[({"kind": kind, **common}, lambda make=make, common=common: make(**common))
          for common in COMMON for kind, make in [("sgd", keras.optimizers.SGD), ("adam", keras.optimizers.Adam),
                                                  ("nadam", keras.optimizers.Nadam)]],
        # Schedules are tested with SGD, because a step of SGD depends only on the learning rate. A
        # step of Adam also depends on the powers of the betas, which Keras computes in float32.
        *[({"kind": "sgd", "learning_rate": 0.1, "learning_rate_schedule": {"name": name, **ours(given)}},
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
