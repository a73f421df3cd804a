"""Draws random models from tables of layers, options and functions of keras.ops.

Layers in LAYERS are drawn. Keras determines which layers fit: a layer that Keras rejects is
dropped. Equal seeds produce equal models."""
import json
import random

import keras

L, ops = keras.layers, keras.ops

# glu and threshold cannot be used by name, because glu changes the shape, and threshold needs
# arguments.
ACTIVATIONS = ["linear", "relu", "sigmoid", "tanh", "softmax", "celu", "elu", "exponential", "gelu", "hard_shrink",
               "hard_sigmoid", "hard_silu", "hard_tanh", "leaky_relu", "log_sigmoid", "log_softmax", "mish", "relu6",
               "selu", "silu", "soft_shrink", "softplus", "softsign", "sparse_plus", "sparse_sigmoid", "sparsemax",
               "squareplus", "tanh_shrink"]
INITIALIZERS = ["glorot_uniform", "he_normal", "lecun_uniform", "random_normal", "truncated_normal", "orthogonal",
                "variance_scaling"]
FLAG = [True, False]


def sizes(*most):
    """Draws a window or stride: one number per axis, or one number for all axes."""
    return lambda r, shape: r.choice([r.randint(1, most[0]), [r.randint(1, m) for m in most]])


def axes(r, shape):
    """Draws one axis of an example, or several; the batch is axis 0."""
    rank = len(shape)
    some = sorted(r.sample(range(1, rank), r.randint(1, rank - 1)))
    return r.choice([-1, r.randint(1, rank - 1), some])


def some_axes_or_none(r, shape):
    return r.choice([None, axes(r, shape)])


def cropped(axis):
    """Draws a size that exceeds the image's size by at most one. The model must state the image's size."""
    return lambda r, shape: r.randint(1, shape[axis] + 1)


def axis(r, shape):
    return r.choice([-1, r.randint(1, len(shape) - 1)])


def permutation(r, shape):
    return tuple(r.sample(range(1, len(shape)), len(shape) - 1))


def target(r, shape):
    """Draws a shape with as many elements as an example. One dimension may be -1."""
    size = 1
    for dim in shape[1:]:
        size *= dim or 4
    first = r.choice([d for d in range(1, size + 1) if size % d == 0])
    return r.choice([(size,), (-1,), (first, size // first), (first, -1), (-1, first)])


def noise_shape(r, shape):
    return r.choice([None, [None, *[r.choice([None, 1]) for _ in shape[1:]]]])


KERNEL = {"use_bias": FLAG, "activation": ACTIVATIONS, "kernel_initializer": INITIALIZERS,
          "bias_initializer": ["zeros", "ones", "random_uniform"]}
RECURRENT = {"units": [1, 3], "activation": ["tanh", "sigmoid", "relu", "softsign"], "use_bias": FLAG,
             "return_sequences": FLAG, "go_backwards": FLAG, "recurrent_initializer": ["orthogonal", "glorot_normal"],
             "zero_output_for_mask": FLAG, "unroll": FLAG}
GATED = {**RECURRENT, "recurrent_activation": ["sigmoid", "hard_sigmoid", "tanh"]}
NORMALIZATION = {"epsilon": [1e-3, 0.1], "center": FLAG, "scale": FLAG}


def conv(rank):
    padding = ["valid", "same"] + (["causal"] if rank == 1 else [])
    return {"filters": [2, 4], "kernel_size": sizes(*[3] * rank), "strides": sizes(*[2] * rank), "padding": padding,
            "dilation_rate": [1, 1, 2], **KERNEL}


def without(options, *names):
    return {name: choices for name, choices in options.items() if name not in names}


# Stands for the largest output_padding, which is below the strides.
LARGEST = "largest"


def conv_transpose(rank):
    return {**without(conv(rank), "dilation_rate"), "padding": ["valid", "same"], "output_padding": [None, LARGEST]}


def depthwise(rank):
    options = without(conv(rank), "filters", "kernel_initializer", "strides")
    return {**options, "strides": [1, 1, 2], "depth_multiplier": [1, 2], "padding": ["valid", "same"]}


def conv_lstm(rank):
    options = without(conv(rank), "activation", "padding")
    return {**options, **without(GATED, "units", "zero_output_for_mask"), "padding": ["valid", "same"],
            "unit_forget_bias": FLAG}


def pooling(rank):
    return {"pool_size": sizes(*[3] * rank), "strides": sizes(*[2] * rank), "padding": ["valid", "same"]}


def window_counts(r, shape):
    """Draws the number of windows of adaptive pooling along each axis, only from those for which TensorFlow has
    gradients. Fails if a length is None."""
    return [r.choice([n for n in range(1, 5) if -(-size // n) < size]) for size in shape[1:-1]]


def margins(rank):
    def draw(r, shape):
        pairs = [[r.randint(0, 2), r.randint(0, 2)] for _ in range(rank)]
        return r.choice([1, pairs[0] if rank == 1 else pairs, pairs[0] if rank == 1 else [a for a, _ in pairs]])
    return draw


# {class: (ranks of its input, including the batch; {argument: choices, or a function that draws one})}. Arguments
# without a default must be drawn; REQUIRED lists these arguments.
LAYERS = {
    "Dense": ((2, 3, 4), {"units": [1, 3, 4], **KERNEL}),
    "EinsumDense": ((3,), {"equation": ["abc,cd->abd", "...b,bc->...c"], "output_shape": [(None, 4), (None, 2)],
                           "bias_axes": [None, "d", "c"], "activation": ACTIVATIONS}),
    "Identity": ((2, 3, 4), {}),
    "Flatten": ((2, 3, 4), {}),
    "Reshape": ((2, 3, 4), {"target_shape": target}),
    "Permute": ((2, 3, 4), {"dims": permutation}),
    "RepeatVector": ((2,), {"n": [1, 3]}),
    "Activation": ((2, 3, 4), {"activation": ACTIVATIONS}),
    "ActivityRegularization": ((2, 3, 4), {"l1": [0.0, 0.01], "l2": [0.0, 0.01]}),
    "ReLU": ((2, 3, 4), {"max_value": [None, 0.5, 2.0], "negative_slope": [0.0, 0.2], "threshold": [0.0, 0.3]}),
    "ELU": ((2, 3, 4), {"alpha": [1.0, 0.4]}),
    "LeakyReLU": ((2, 3, 4), {"negative_slope": [0.3, 0.05]}),
    "PReLU": ((2, 3, 4), {"shared_axes": [None, [1]], "alpha_initializer": ["zeros", "random_normal"]}),
    "Softmax": ((2, 3, 4), {"axis": axes}),
    "Masking": ((3,), {"mask_value": [0.0, 1.0]}),
    "Rescaling": ((2, 3, 4), {"scale": [0.5, 2.0], "offset": [0.0, -0.3]}),
    "Resizing": ((4,), {"height": [2, 4, 7], "width": [3, 5, 8], "antialias": FLAG,
                        "interpolation": ["bilinear", "nearest", "bicubic", "lanczos3", "lanczos5"]}),
    "CenterCrop": ((4,), {"height": cropped(1), "width": cropped(2)}),
    "RandomBrightness": ((4,), {"factor": [0.0], "value_range": [(0, 255), (-1, 1)]}),
    "RandomContrast": ((4,), {"factor": [0.0], "value_range": [(0, 255), (-1, 1)]}),
    "Dropout": ((2, 3, 4), {"rate": [0.0], "noise_shape": noise_shape}),
    "SpatialDropout1D": ((3,), {"rate": [0.0]}),
    "SpatialDropout2D": ((4,), {"rate": [0.0]}),
    "AlphaDropout": ((2, 3, 4), {"rate": [0.0], "noise_shape": noise_shape}),
    "GaussianNoise": ((2, 3, 4), {"stddev": [0.0]}),
    "GaussianDropout": ((2, 3, 4), {"rate": [0.0]}),
    "BatchNormalization": ((2, 3, 4), {"axis": axis, "momentum": [0.99, 0.5], **NORMALIZATION}),
    "LayerNormalization": ((2, 3, 4), {"axis": axes, **NORMALIZATION}),
    "GroupNormalization": ((2, 3, 4), {"groups": [1, 2, -1], "axis": axis, **NORMALIZATION}),
    "UnitNormalization": ((2, 3, 4), {"axis": axes}),
    "RMSNormalization": ((2, 3, 4), {"axis": [-1], "epsilon": [1e-6, 0.01]}),
    "Normalization": ((2, 3, 4), {"axis": some_axes_or_none, "invert": FLAG}),
    "SimpleRNN": ((3,), RECURRENT),
    "LSTM": ((3,), {**GATED, "unit_forget_bias": FLAG}),
    "GRU": ((3,), {**GATED, "reset_after": FLAG}),
    "ConvLSTM1D": ((4,), conv_lstm(1)),
    "ConvLSTM2D": ((5,), conv_lstm(2)),
    "ConvLSTM3D": ((6,), conv_lstm(3)),
    "Conv1D": ((3,), {**conv(1), "groups": [1, 1, 2]}),
    "Conv2D": ((4,), {**conv(2), "groups": [1, 1, 2]}),
    "DepthwiseConv1D": ((3,), depthwise(1)),
    "DepthwiseConv2D": ((4,), depthwise(2)),
    "SeparableConv1D": ((3,), {**depthwise(1), "filters": [2, 3]}),
    "SeparableConv2D": ((4,), {**depthwise(2), "filters": [2, 3]}),
    "Conv1DTranspose": ((3,), conv_transpose(1)),
    "Conv2DTranspose": ((4,), conv_transpose(2)),
    "MaxPooling1D": ((3,), pooling(1)),
    "MaxPooling2D": ((4,), pooling(2)),
    "AveragePooling1D": ((3,), pooling(1)),
    "AveragePooling2D": ((4,), pooling(2)),
    "GlobalMaxPooling1D": ((3,), {"keepdims": FLAG}),
    "GlobalMaxPooling2D": ((4,), {"keepdims": FLAG}),
    "GlobalAveragePooling1D": ((3,), {"keepdims": FLAG}),
    "GlobalAveragePooling2D": ((4,), {"keepdims": FLAG}),
    "ZeroPadding1D": ((3,), {"padding": margins(1)}),
    "ZeroPadding2D": ((4,), {"padding": margins(2)}),
    "Cropping1D": ((3,), {"cropping": margins(1)}),
    "Cropping2D": ((4,), {"cropping": margins(2)}),
    "UpSampling1D": ((3,), {"size": [1, 2]}),
    "UpSampling2D": ((4,), {"size": sizes(2, 2), "interpolation": ["nearest", "bilinear", "bicubic"]}),
    "SpatialDropout3D": ((5,), {"rate": [0.0]}),
    "Conv3D": ((5,), {**conv(3), "groups": [1, 1, 2]}),
    "Conv3DTranspose": ((5,), conv_transpose(3)),
    "MaxPooling3D": ((5,), pooling(3)),
    "AveragePooling3D": ((5,), {**pooling(3), "pool_size": sizes(3, 3, 3)}),
    "GlobalMaxPooling3D": ((5,), {"keepdims": FLAG}),
    "GlobalAveragePooling3D": ((5,), {"keepdims": FLAG}),
    "ZeroPadding3D": ((5,), {"padding": margins(3)}),
    "Cropping3D": ((5,), {"cropping": margins(3)}),
    "UpSampling3D": ((5,), {"size": sizes(2, 2, 2)}),
    **{f"Adaptive{kind}Pooling{rank}D": ((rank + 2,), {"output_size": window_counts})
       for kind in ("Max", "Average") for rank in (1, 2, 3)},
}
REQUIRED = {"units", "filters", "kernel_size", "rate", "stddev", "equation", "output_shape", "target_shape", "dims", "n",
            "activation", "mean", "variance", "scale", "size", "output_size", "pool_size", "height", "width", "factor"}
# Layers that have two inputs of equal shape.
MERGES = {
    "Add": {}, "Subtract": {}, "Multiply": {}, "Average": {}, "Maximum": {}, "Minimum": {},
    "Concatenate": {"axis": axis}, "Dot": {"axes": axis, "normalize": FLAG},
    "Attention": {"use_scale": FLAG, "score_mode": ["dot", "concat"]}, "AdditiveAttention": {"use_scale": FLAG},
    "MultiHeadAttention": {"num_heads": [1, 2], "key_dim": [2, 3], "value_dim": [None, 2], "use_bias": FLAG,
                           "use_gate": FLAG, "output_shape": [None, 3]},
}
# Layers that are drawn by functions below, and layers that are not drawn because they are random in training or have no
# gradient. preprocessing_test.py tests the latter.
OTHERS = {"InputLayer", "Embedding", "Bidirectional", "TimeDistributed", "RNN", "SimpleRNNCell", "LSTMCell", "GRUCell",
          "StackedRNNCells", "CategoryEncoding", "Discretization", "IntegerLookup", "RandomFlip",
          "RandomCrop", "RandomTranslation", "RandomRotation", "RandomZoom", "RandomShear", "RandomInvert",
          "RandomGrayscale"}

# Functions of keras.ops, with one value or two values of equal shape as arguments. Some of them need values of certain
# ranks. ops.glu is missing, because Keras infers a wrong shape for its result, and layers after it do not fit.
UNARY = [
    lambda r, x: -x, lambda r, x: ops.abs(x), lambda r, x: ops.square(x), lambda r, x: ops.sqrt(ops.square(x) + 1),
    lambda r, x: ops.exp(ops.tanh(x)), lambda r, x: ops.log(ops.abs(x) + 2), lambda r, x: ops.tanh(x),
    lambda r, x: ops.erf(x), lambda r, x: ops.sin(x), lambda r, x: ops.cos(x),
    lambda r, x: ops.rsqrt(ops.abs(x) + 1), lambda r, x: ops.clip(x, -0.5, 1),
    lambda r, x: x * 2, lambda r, x: 1 - x, lambda r, x: x / 3, lambda r, x: x**2, lambda r, x: ops.power(ops.abs(x) + 1, 0.5),
    lambda r, x: ops.relu(x), lambda r, x: ops.relu6(x), lambda r, x: ops.sigmoid(x), lambda r, x: ops.silu(x),
    lambda r, x: ops.softplus(x), lambda r, x: ops.softsign(x), lambda r, x: ops.selu(x),
    lambda r, x: ops.log_sigmoid(x), lambda r, x: ops.leaky_relu(x, 0.3),
    lambda r, x: ops.gelu(x, approximate=r.choice(FLAG)), lambda r, x: ops.softmax(x, axis=r.randint(1, len(x.shape) - 1)),
    lambda r, x: ops.where(x > 0.1, x, 0.5), lambda r, x: ops.where(ops.logical_not(x < 0), x, -x),
    lambda r, x: ops.where(ops.not_equal(x, 0), x, 1.0), lambda r, x: ops.zeros_like(x) + x,
    lambda r, x: ops.mean(x, axis=r.randint(1, len(x.shape) - 1), keepdims=r.choice(FLAG)),
    lambda r, x: ops.sum(x, axis=-1, keepdims=True), lambda r, x: ops.max(x, axis=-1, keepdims=True),
    lambda r, x: ops.min(x, axis=r.randint(1, len(x.shape) - 1), keepdims=True),
    lambda r, x: ops.cast(ops.any(x > 0.5, axis=-1, keepdims=True), "float32") + x,
    lambda r, x: ops.where(ops.all(x > -1, axis=-1, keepdims=True), x, 0.2),
    lambda r, x: ops.expand_dims(x, r.randint(1, len(x.shape))), lambda r, x: ops.squeeze(ops.expand_dims(x, 1), 1),
    lambda r, x: x[:, None], lambda r, x: x[..., :1], lambda r, x: x[:, -1], lambda r, x: x[:, 1::2],
    lambda r, x: ops.split(x, 2, axis=-1)[1], lambda r, x: ops.transpose(x, (0, *permutation(r, x.shape))),
    lambda r, x: ops.swapaxes(x, 1, -1), lambda r, x: ops.moveaxis(x, 1, -1),
    lambda r, x: ops.elu(x, 0.4), lambda r, x: ops.celu(x, 0.6), lambda r, x: ops.hard_sigmoid(x),
    lambda r, x: ops.hard_silu(x), lambda r, x: ops.hard_tanh(x), lambda r, x: ops.hard_shrink(x, 0.3),
    lambda r, x: ops.soft_shrink(x, 0.3), lambda r, x: ops.tanh_shrink(x), lambda r, x: ops.threshold(x, 0.2, -1.0),
    lambda r, x: ops.squareplus(x, 2), lambda r, x: ops.sparse_plus(x), lambda r, x: ops.sparse_sigmoid(x),
    lambda r, x: ops.log_softmax(x, axis=r.randint(1, len(x.shape) - 1)),
    lambda r, x: ops.sparsemax(x, axis=r.randint(1, len(x.shape) - 1)), lambda r, x: ops.log_softmax(x),
    lambda r, x: ops.normalize(x, axis=r.randint(1, len(x.shape) - 1), order=r.choice([1, 2])),
    lambda r, x: ops.one_hot(ops.argmax(x, axis=-1), x.shape[-1]) * x, lambda r, x: ops.reciprocal(ops.abs(x) + 1),
    lambda r, x: ops.var(x, axis=-1, keepdims=r.choice(FLAG)), lambda r, x: ops.std(x, axis=-1, keepdims=True),
    lambda r, x: ops.logsumexp(x, axis=-1, keepdims=r.choice(FLAG)), lambda r, x: ops.convert_to_tensor(x),
    lambda r, x: ops.repeat(x, 2, axis=1), lambda r, x: ops.tile(x, (1, 2, *[1] * (len(x.shape) - 2))),
    lambda r, x: ops.flip(x, axis=r.randint(1, len(x.shape) - 1)), lambda r, x: ops.roll(x, r.choice([1, -2]), axis=1),
    lambda r, x: ops.pad(x, [[0, 0], [1, 2], *[[0, 0]] * (len(x.shape) - 2)]),
    lambda r, x: x * ops.arange(x.shape[-1], dtype="float32"), lambda r, x: x - ops.convert_to_tensor(0.5),
    lambda r, x: ops.floor(x) + x, lambda r, x: ops.ceil(x) - x, lambda r, x: ops.round(x, r.choice([0, 1])) + x,
    lambda r, x: ops.sign(x) * x, lambda r, x: x % r.choice([0.7, -1.3]), lambda r, x: x // 0.7 + x,
    lambda r, x: ops.log1p(ops.abs(x)), lambda r, x: ops.expm1(ops.tanh(x)),
    lambda r, x: ops.prod(x, axis=r.randint(1, len(x.shape) - 1), keepdims=True),
    lambda r, x: ops.norm(x, ord=r.choice([None, 1, 2]), axis=r.randint(1, len(x.shape) - 1), keepdims=True),
    lambda r, x: ops.one_hot(ops.argmin(x, axis=-1), x.shape[-1]) + x,
    lambda r, x: ops.expand_dims(ops.cast(ops.count_nonzero(ops.relu(x), axis=-1), "float32"), -1) + x,
    lambda r, x: x[:, ::r.choice([-1, -2])],
    lambda r, x: ops.split(x, [1], axis=-1)[0], lambda r, x: ops.take(x, [0, -1, 0], axis=r.randint(1, len(x.shape) - 1)),
    lambda r, x: ops.slice(x, [0] * len(x.shape), [-1, 1, *[-1] * (len(x.shape) - 2)]),
]
BINARY = [
    lambda r, x, y: x + y, lambda r, x, y: x - y, lambda r, x, y: x * y, lambda r, x, y: x / (ops.abs(y) + 1),
    lambda r, x, y: ops.maximum(x, y), lambda r, x, y: ops.minimum(x, y),
    lambda r, x, y: ops.where(ops.logical_and(x > 0, y > 0), x, y),
    lambda r, x, y: ops.where(ops.logical_or(x > 0, y <= 0), x, y),
    lambda r, x, y: ops.where(ops.logical_xor(x >= 0, y > 0), x, y),
    lambda r, x, y: ops.stack([x, y], axis=1), lambda r, x, y: ops.concatenate([x, y], axis=-1),
    lambda r, x, y: ops.matmul(x, ops.swapaxes(y, -1, -2)), lambda r, x, y: ops.einsum("abc,adc->abd", x, y),
]


def arguments(r, options, shape):
    """Draws arguments. Each argument with a default keeps the default with probability 1/2."""
    drawn = {}
    for name, choices in options.items():
        if name in REQUIRED or r.random() < 0.5:
            drawn[name] = choices(r, shape) if callable(choices) else r.choice(choices)
    if drawn.get("output_padding") is LARGEST:
        strides = drawn.get("strides", 1)
        drawn["output_padding"] = strides - 1 if isinstance(strides, int) else [stride - 1 for stride in strides]
    return drawn


class Drawing:
    """Draws one model of at most nine layers and functions."""

    def __init__(self, seed):
        self.r = random.Random(seed)
        self.layers = []
        self.inputs, self.values, self.used = [], [], set()

    def model(self):
        for _ in range(self.r.choice([1, 1, 2])):
            self.add_input()
        most = self.r.randint(3, 9)
        for _ in range(20 * most):
            if len(self.layers) >= most:
                break
            self.grow()
        outputs = [value for i, value in enumerate(self.values) if i not in self.used][-3:]
        return keras.Model(self.inputs, outputs[0] if len(outputs) == 1 else outputs, name="drawn")

    def add_input(self):
        r = self.r
        kind = r.choice(["row", "sequence", "sequence", "image", "volume", "clip", "ids", "ids"])
        length = r.choice([None, 5])
        if kind == "ids":
            ids = keras.Input((length,), dtype=r.choice(["int32", "float32"]), name=f"ids_{len(self.inputs)}")
            self.inputs.append(ids)
            layer = L.Embedding(7, r.choice([2, 4]), mask_zero=r.choice(FLAG))
            self.values.append(layer(ids))
            return
        shape = {"row": (r.choice([3, 4]),), "sequence": (length, r.choice([3, 4])),
                 "image": (r.choice([None, 6]), r.choice([None, 5]), r.choice([2, 4])),
                 "volume": (r.choice([None, 4]), 5, r.choice([None, 3]), r.choice([2, 4])),
                 "clip": (r.choice([None, 3]), 4, 3, 3, 2)}[kind]
        self.inputs.append(keras.Input(shape, name=f"{kind}_{len(self.inputs)}"))
        self.values.append(self.inputs[-1])

    def grow(self):
        """Applies one layer or function to a value, if Keras accepts this."""
        unused = [i for i in range(len(self.values)) if i not in self.used]
        at = self.r.choice(unused) if self.r.random() < 0.9 else self.r.randrange(len(self.values))
        x = self.values[at]
        way = self.r.choice([self.layer] * 6 + [self.merge] * 2 + [self.function, self.wrapper, self.nested, self.again])
        try:
            uses, made = way(at, x)
        except Exception:  # Keras may raise any type of error for what does not fit
            return
        made = [value for value in keras.tree.flatten(made) if len(value.shape) in (2, 3, 4, 5)]
        made = [value for value in made if all(dim is None or 0 < dim <= 64 for dim in value.shape[1:])]
        if not made:
            return
        self.layers.append(way.__name__)
        self.used.update(uses)
        self.values.extend(made)

    def draw_layer(self, shape, names=None):
        fitting = names or [name for name, (ranks, _) in LAYERS.items() if len(shape) in ranks]
        name = self.r.choice(fitting)
        return getattr(L, name)(**arguments(self.r, LAYERS[name][1], shape))

    def layer(self, at, x):
        return {at}, self.draw_layer(x.shape)(x)

    def partner(self, at, x):
        """Returns another value of the same shape, or the value itself."""
        equal = [i for i, value in enumerate(self.values) if tuple(value.shape) == tuple(x.shape)]
        return self.r.choice(equal)

    def merge(self, at, x):
        sequences = len(x.shape) == 3
        name = self.r.choice([name for name in MERGES if sequences or "Attention" not in name])
        other = self.partner(at, x)
        y = self.values[other] if other != at else L.Dense(x.shape[-1])(x)
        layer = getattr(L, name)(**arguments(self.r, MERGES[name], x.shape))
        if name == "MultiHeadAttention":
            return {at, other}, layer(x, y, use_causal_mask=self.r.choice(FLAG))
        if "Attention" in name:
            return {at, other}, layer([x, y], use_causal_mask=self.r.choice(FLAG))
        return {at, other}, layer([x, y])

    def function(self, at, x):
        if self.r.random() < 0.7:
            return {at}, self.r.choice(UNARY)(self.r, x)
        other = self.partner(at, x)
        return {at, other}, self.r.choice(BINARY)(self.r, x, self.values[other])

    def cell(self, shape):
        name = self.r.choice(["SimpleRNN", "LSTM", "GRU"])
        options = without(LAYERS[name][1], "return_sequences", "go_backwards", "zero_output_for_mask", "unroll")
        return getattr(L, f"{name}Cell")(**arguments(self.r, options, shape))

    def recurrent(self, shape, name):
        """Returns a recurrent layer of this class, which may be an RNN of one cell or several."""
        if name != "RNN":
            return self.draw_layer(shape, [name])
        cells = [self.cell(shape) for _ in range(self.r.choice([1, 1, 2, 3]))]
        options = {name: FLAG for name in ("return_sequences", "go_backwards", "zero_output_for_mask")}
        return L.RNN(cells[0] if len(cells) == 1 else cells, **arguments(self.r, options, shape))

    def wrapper(self, at, x):
        if self.r.random() < 0.3:
            return {at}, self.recurrent(x.shape, "RNN")(x)
        if self.r.random() < 0.5:
            recurrent = {3: ["SimpleRNN", "LSTM", "GRU", "RNN"], 4: ["ConvLSTM1D"], 5: ["ConvLSTM2D"], 6: ["ConvLSTM3D"]}
            layer = self.recurrent(x.shape, self.r.choice(recurrent[len(x.shape)]))
            return {at}, L.Bidirectional(layer, merge_mode=self.r.choice(["concat", "sum", "mul", "ave", None]))(x)
        step = (None, *x.shape[2:])
        layer = self.pair(step) if self.r.random() < 0.4 else self.draw_layer(step)
        return {at}, L.TimeDistributed(layer)(x)

    def pair(self, shape):
        """Returns a functional or sequential model of two layers."""
        if self.r.random() < 0.5:
            first = self.draw_layer(shape)
            second = self.draw_layer(first.compute_output_shape(shape))
            return keras.Sequential([keras.Input(shape[1:]), first, second])
        inner = keras.Input(shape[1:])
        y = self.draw_layer(shape)(inner)
        return keras.Model(inner, self.draw_layer(y.shape)(y))

    def nested(self, at, x):
        return {at}, self.pair(x.shape)(x)

    def again(self, at, x):
        """Calls a layer again, on another value."""
        histories = [value._keras_history.operation for value in self.values]
        shared = [op for op in histories if isinstance(op, L.Layer) and op.weights and not isinstance(op, L.Embedding)]
        layer = self.r.choice(shared)
        if isinstance(layer, keras.Model):  # Keras would accept sizes that only broadcast
            pairs = zip(layer.inputs[0].shape, x.shape)
            assert all(a == b or a is None or b is None for a, b in pairs)
        if isinstance(layer, L.PReLU):  # Keras would broadcast x to the slopes, but infers the shape of x
            assert all(a in (1, b) for a, b in zip(layer.alpha.shape, x.shape[1:]))
        return {at}, layer(x)


def draw(seed):
    """Returns the model for this seed, in the type of Keras' floatx."""
    keras.utils.clear_session()
    keras.utils.set_random_seed(seed)
    return Drawing(seed).model()


def describe(model):
    return json.dumps(json.loads(model.to_json()))
