"""Compares the options that random_models.py does not draw with Keras in float64: outputs, and a step of SGD. Another
test compares the variables to which each initializer of a layer applies. run.sh runs it.

The last tests fail if docs/training-file.md lists an argument that neither this file nor random_models.py uses."""
import tempfile
import unittest

import harness  # noqa: F401  before Keras
from harness import tool

import numpy as np
import keras
import tensorflow as tf

import keras_layers
import random_models
import random_models_test
import unsupported_arguments
from interop_test import variables
from model_case import FORMS, Refused, run
from random_models_test import differences, in_type

L, ops = keras.layers, keras.ops


class Given:
    """An input of a model, and what a layer gets from it."""

    def __init__(self, shape, name, convert, dtype=None):
        self.shape, self.name, self.convert, self.dtype = shape, name, convert, dtype


def values(*shape):
    """Numbers that depend on a variable, so that a step also checks the gradient of the layer's input."""
    return Given(shape, "values", lambda x: L.Dense(shape[-1])(x))


def raw(*shape, dtype=None):
    return Given(shape, "raw", lambda x: x, dtype)


def mask(*shape):
    return Given(shape, "mask", lambda x: ops.greater(x, -0.3))


def times(maximum, *shape):
    return Given(shape, "image", lambda x: x * maximum)


ROW, STEPS, IMAGE, VOLUME = values(4), values(5, 4), values(6, 5, 4), values(4, 5, 3, 2)
LONG = values(40, 4)
FRAMES, ROWS, CLIP = values(3, 5, 4, 2), values(3, 5, 2), values(3, 4, 3, 2, 2)
# Values of other types than Keras' floatx.
PIXELS, COUNTS = raw(6, 5, 2, dtype="uint8"), raw(5, 4, dtype="int32")
DOUBLES = raw(5, 4, dtype="float64")
QUERY, VALUE, KEY = values(5, 4), values(6, 4), values(6, 4)
ATTENTION = {"inputs": [QUERY, VALUE]}
HEADS = {"num_heads": 2, "key_dim": 3}
CROSS = {"query": QUERY, "value": values(6, 3)}
GRID = {"query": values(2, 3, 4), "value": values(2, 3, 4)}


def states(count, *shape):
    return [values(*shape) for _ in range(count)]


def recurrent(count):
    """Returns the options of a recurrent layer with this number of states."""
    return [({"units": 3, "return_state": True}, STEPS), ({"units": 3, "dropout": 0.4}, STEPS),
            ({"units": 3, "return_state": True, "return_sequences": True, "go_backwards": True}, STEPS),
            ({"units": 3, "recurrent_dropout": 0.4}, STEPS),
            ({"units": 3, "return_sequences": True}, {"sequence": STEPS, "initial_state": states(count, 3)}),
            ({"units": 3}, {"sequence": STEPS, "mask": mask(5)})]


FLAGS = [False, True]


def conv_lstm(inputs, *state):
    plain = {"filters": 2, "kernel_size": 2, "padding": "same"}
    return [({**plain, "return_state": True}, inputs), ({**plain, "dropout": 0.4}, inputs),
            ({**plain, "recurrent_dropout": 0.4}, inputs),
            *[({**plain, "return_sequences": True, "zero_output_for_mask": zero},
               {"sequence": inputs, "mask": mask(inputs.shape[0])}) for zero in FLAGS],
            ({**plain, "zero_output_for_mask": True, "go_backwards": True},
             {"sequence": inputs, "mask": mask(inputs.shape[0])}),
            ({**plain, "return_sequences": True, "return_state": True},
             {"sequence": inputs, "initial_state": states(2, *state)})]


def pair(cell, **arguments):
    """Returns the two layers of a Bidirectional layer, with different options."""
    forward, backward = getattr(L, cell), getattr(L, cell)
    return lambda: {"layer": forward(3, return_sequences=True),
                    "backward_layer": backward(3, return_sequences=True, go_backwards=True, **arguments)}


def cells():
    return [L.LSTMCell(3), L.SimpleRNNCell(2), L.LSTMCell(2)]


def normalized(shape):
    """Returns a functional model with a BatchNormalization whose output it uses twice."""
    x = keras.Input(shape)
    y = L.BatchNormalization(momentum=0.5)(L.Dense(3)(x))
    return keras.Model(x, L.Add()([L.Dense(3)(y), y]))


# {layer: [(arguments, or a function that returns them; the input, or the arguments of the call)]}. Arguments that are
# layers need a function, because each model needs its own layers.
OPTIONS = {
    "Softmax": [({}, {"inputs": STEPS, "mask": mask(5, 4)}), ({"axis": [1, 2]}, {"inputs": STEPS, "mask": mask(5, 4)})],
    "Dropout": [({"rate": 0.5}, STEPS), ({"rate": 0.5, "noise_shape": [None, 1, 4]}, STEPS)],
    "GaussianNoise": [({"stddev": 0.5}, STEPS)],
    "GaussianDropout": [({"rate": 0.5}, STEPS)],
    "AlphaDropout": [({"rate": 0.5}, STEPS), ({"rate": 0.5, "noise_shape": [1, 5, 1]}, STEPS)],
    "SpatialDropout1D": [({"rate": 0.5}, STEPS)],
    "SpatialDropout2D": [({"rate": 0.5}, IMAGE)],
    "SpatialDropout3D": [({"rate": 0.5}, VOLUME)],
    "RMSNormalization": [({"axis": [1, 2], "epsilon": 0.1}, STEPS), ({"axis": 2}, STEPS)],
    "BatchNormalization": [({"synchronized": True}, STEPS)] + [({}, given) for given in (PIXELS, COUNTS, DOUBLES)],
    "Normalization": [({"mean": [.1, .2, .3, .4], "variance": [1, 2, 3, .5]}, STEPS),
                      ({"axis": 1, "mean": [.1, .2, .3, .4, .5], "variance": [1, 2, 3, .5, 4], "invert": True}, STEPS),
                      ({"axis": None, "mean": 0.1, "variance": 2.0}, STEPS), ({}, STEPS), ({"axis": [2, 1]}, IMAGE),
                      ({"axis": None, "invert": True}, STEPS), ({}, PIXELS), ({}, COUNTS)],
    "Conv1DTranspose": [({"filters": 2, "kernel_size": size, "strides": 3, "output_padding": padding, "padding": border},
                         STEPS) for size in (2, 3, 5) for padding in (0, 1, 2) for border in ("valid", "same")
                        if size % 2 or padding or border == "valid"],
    "Conv2DTranspose": [({"filters": 2, "kernel_size": [3, 2], "strides": [2, 3], "output_padding": [0, 2],
                          "padding": border}, IMAGE) for border in ("valid", "same")],
    "Conv3DTranspose": [({"filters": 2, "kernel_size": [2, 3, 3], "strides": [2, 1, 3], "output_padding": [1, 0, 1],
                          "padding": border}, VOLUME) for border in ("valid", "same")],
    # The kernels of TensorFlow need the same stride along both axes.
    **{f"{kind}Conv{rank}D": [({**given, "kernel_size": size, "strides": strides, "dilation_rate": dilations,
                                "padding": padding, "depth_multiplier": 2}, image)
                              for strides, dilations in ((2, 2), (2, 3), (3, 2)) for padding in ("valid", "same")]
       for kind, given in (("Depthwise", {}), ("Separable", {"filters": 3}))
       for rank, size, image in ((1, 3, values(9, 4)), (2, [2, 3], values(8, 9, 2)))},
    "Rescaling": [({"scale": 1 / 255, "offset": -0.5}, given) for given in (PIXELS, COUNTS, DOUBLES)],
    "Dense": [({"units": 3}, given) for given in (PIXELS, COUNTS, DOUBLES)],
    "ReLU": [({}, COUNTS), ({"negative_slope": 0.2}, COUNTS)],
    "TimeDistributed": [
        *[(lambda: {"layer": L.Dense(2)}, given) for given in (PIXELS, DOUBLES)],
        (lambda: {"layer": keras.Sequential([L.Dense(3), L.BatchNormalization(momentum=0.5), L.Dense(2)])}, STEPS),
        (lambda: {"layer": keras.Sequential([L.Dense(3), L.BatchNormalization(axis=1, momentum=0.5)])}, LONG),
        (lambda: {"layer": normalized((5, 4))}, values(3, 5, 4)),
        (lambda: {"layer": L.TimeDistributed(L.BatchNormalization(momentum=0.5))}, values(3, 5, 4)),
        (lambda: {"layer": keras.Sequential([L.TimeDistributed(normalized((4,)))])}, values(3, 5, 4)),
        (lambda: {"layer": keras.Sequential([L.Conv1D(3, 2), L.BatchNormalization(), L.LSTM(2)])}, values(3, 5, 4)),
        (lambda: {"layer": keras.Sequential([L.Dense(3, activity_regularizer="l2"), L.Dense(2)])}, STEPS),
        (lambda: {"layer": keras.Sequential([L.BatchNormalization(), L.ActivityRegularization(l1=0.1)])},
         {"inputs": STEPS, "mask": mask(5)}),
        (lambda: {"layer": L.Bidirectional(L.GRU(3))}, values(3, 5, 4)),
    ],
    "Resizing": [({"height": height, "width": width, **options}, image)
                 for height, width, image in ((4, 9, times(100, 6, 5, 2)), (9, 4, values(6, 5, 2)))
                 for options in ({"pad_to_aspect_ratio": True}, {"pad_to_aspect_ratio": True, "fill_value": 7.5},
                                 {"crop_to_aspect_ratio": True},
                                 {"crop_to_aspect_ratio": True, "interpolation": "nearest"})],
    # TensorFlow has no float64 gradient for lanczos3 and lanczos5; preprocessing_test.py compares their weights.
    "UpSampling2D": [({"size": [2, 3], "interpolation": name}, IMAGE) for name in ("bilinear", "bicubic")],
    "Dot": [({"axes": [1, 2]}, {"inputs": [values(5, 4), values(3, 5)]})],
    "SimpleRNN": recurrent(1),
    "LSTM": recurrent(2),
    "GRU": recurrent(1),
    "ConvLSTM1D": conv_lstm(ROWS, 5, 2),
    "ConvLSTM2D": conv_lstm(FRAMES, 5, 4, 2),
    "ConvLSTM3D": conv_lstm(CLIP, 4, 3, 2, 2),
    "RNN": [(lambda: {"cell": L.LSTMCell(3), "return_state": True}, STEPS),
            (lambda: {"cell": [L.GRUCell(3), L.LSTMCell(2)], "return_state": True, "return_sequences": True}, STEPS),
            (lambda: {"cell": L.GRUCell(3), "unroll": True}, STEPS)],
    "SimpleRNNCell": [], "LSTMCell": [], "GRUCell": [],  # below
    "StackedRNNCells": [(lambda: {"cells": [L.SimpleRNNCell(3), L.GRUCell(2, reset_after=False)]}, STEPS)],
    "Bidirectional": [(pair("LSTM", unit_forget_bias=False), STEPS), (pair("GRU", reset_after=False), STEPS),
                      (pair("SimpleRNN", activation="relu"), {"sequence": STEPS, "mask": mask(5)}),
                      (lambda: {"layer": L.LSTM(3, return_state=True), "merge_mode": "sum"}, STEPS),
                      *[(lambda given=given, mode=mode: {"layer": L.RNN(cells(), **given), "merge_mode": mode}, inputs)
                        for mode, given, inputs in (
                            ("concat", {"return_sequences": True}, STEPS), ("mul", {"return_state": True}, STEPS),
                            (None, {"return_sequences": True}, {"sequence": STEPS, "mask": mask(5)}))],
                      (lambda: {"layer": L.RNN(L.GRUCell(3), return_sequences=True), "merge_mode": "ave"},
                       {"sequence": STEPS, "initial_state": states(2, 3)}),
                      (lambda: {"layer": L.RNN(L.LSTMCell(3)), "backward_layer": L.LSTM(3, go_backwards=True)}, STEPS),
                      *[(lambda name=name, mode=mode, given=given:
                         {"layer": getattr(L, name)(2, 2, padding="same", **given), "merge_mode": mode}, inputs)
                        for name, mode, given, inputs in (
                            ("ConvLSTM1D", "concat", {"return_sequences": True}, ROWS), ("ConvLSTM1D", "sum", {}, ROWS),
                            ("ConvLSTM2D", None, {"return_sequences": True, "return_state": True}, FRAMES),
                            ("ConvLSTM2D", "concat", {}, {"sequence": FRAMES, "initial_state": states(4, 5, 4, 2)}),
                            ("ConvLSTM3D", "ave", {"return_sequences": True}, CLIP))]],
    "MultiHeadAttention": [
        ({**HEADS, "sliding_window": 2}, {"query": QUERY, "value": QUERY}),
        ({**HEADS, "sliding_window": 2}, {"query": QUERY, "value": QUERY, "use_causal_mask": True}),
        ({**HEADS, "attention_axes": [1]}, CROSS),
        ({**HEADS, "attention_axes": [1, 2]}, GRID),
        *[({**HEADS, "attention_axes": axes, **more}, given)
          for axes, given in (([1], {"query": values(2, 3, 4), "value": values(5, 3, 2)}),
                              ([2], {"query": values(2, 3, 4), "value": values(2, 5, 2)}), ([-2], GRID),
                              ([1, 3], {"query": values(2, 3, 4, 2), "value": values(3, 3, 2, 5)}))
          for more in ({}, {"use_gate": True, "value_dim": 2, "output_shape": [3]})],
        ({**HEADS, "attention_axes": [1]}, {**GRID, "return_attention_scores": True}),
        ({**HEADS, "attention_axes": [2]}, {**GRID, "attention_mask": mask(2, 3, 3)}),
        ({**HEADS, "attention_axes": [2]}, {**GRID, "value_mask": mask(2, 3), "return_attention_scores": True}),
        ({**HEADS, "dropout": 0.3}, CROSS),
        (HEADS, {**CROSS, "key": KEY}),
        (HEADS, {**CROSS, "return_attention_scores": True}),
        ({**HEADS, "use_gate": True}, {**CROSS, "attention_mask": mask(5, 6), "return_attention_scores": True}),
        (HEADS, {**CROSS, "attention_mask": mask(5, 6)}),
        (HEADS, {**CROSS, "value_mask": mask(6)}),
        (HEADS, {**CROSS, "key": KEY, "key_mask": mask(6)}),
        (HEADS, {"query": QUERY, "value": QUERY, "key_mask": mask(5), "value_mask": mask(5), "use_causal_mask": True}),
    ],
    "Attention": [
        ({}, {**ATTENTION, "return_attention_scores": True}),
        ({"use_scale": True, "score_mode": "concat"}, {"inputs": [QUERY, VALUE, KEY], "return_attention_scores": True}),
        ({}, {**ATTENTION, "mask": [mask(5), mask(6)]}),
        ({"use_scale": True}, {**ATTENTION, "mask": [mask(5), mask(6)], "use_causal_mask": True}),
        ({"dropout": 0.3}, ATTENTION),
    ],
    "AdditiveAttention": [
        ({}, {**ATTENTION, "return_attention_scores": True}),
        ({"use_scale": False}, {**ATTENTION, "mask": [mask(5), mask(6)]}),
        ({}, {"inputs": [QUERY, VALUE, KEY], "mask": [mask(5), mask(6)], "use_causal_mask": True,
              "return_attention_scores": True}),
        ({"dropout": 0.3}, ATTENTION),
    ],
}
CELLS = {cell: [{"dropout": 0.4}, {"recurrent_dropout": 0.4}] for cell in ("SimpleRNNCell", "LSTMCell", "GRUCell")}
for _cell, _options in CELLS.items():
    OPTIONS["RNN"] += [(lambda cell=_cell, given=given: {"cell": getattr(L, cell)(3, **given)}, STEPS)
                       for given in _options]
# Options that only have an effect in training, where they are random: their models are not trained.
RANDOM = {"dropout", "recurrent_dropout", "rate", "stddev"}

# Minimal arguments of the layers that have initializers, and their inputs.
INITIALIZED = {
    "Dense": ({"units": 3}, ROW), "EinsumDense": ({"equation": "abc,cd->abd", "output_shape": [5, 3], "bias_axes": "d"},
                                                  STEPS),
    "Embedding": ({"input_dim": 6, "output_dim": 3}, raw(5)), "PReLU": ({}, STEPS),
    "BatchNormalization": ({}, STEPS), "LayerNormalization": ({}, STEPS), "GroupNormalization": ({"groups": 2}, STEPS),
    "MultiHeadAttention": ({**HEADS, "use_gate": True}, {"query": QUERY, "value": QUERY}),
    **{name: ({"units": 3}, STEPS) for name in ("SimpleRNN", "LSTM", "GRU")},
    **{f"ConvLSTM{rank}D": ({"filters": 2, "kernel_size": 2}, inputs)
       for rank, inputs in ((1, ROWS), (2, FRAMES), (3, CLIP))},
    **{f"{kind}{rank}D": (given, inputs) for rank, inputs in ((1, STEPS), (2, IMAGE), (3, VOLUME))
       for kind, given in (("Conv", {"filters": 2, "kernel_size": 2}), ("DepthwiseConv", {"kernel_size": 2}),
                           ("SeparableConv", {"filters": 2, "kernel_size": 2})) if rank < 3 or kind == "Conv"},
    **{f"Conv{rank}DTranspose": ({"filters": 2, "kernel_size": 2}, inputs)
       for rank, inputs in ((1, STEPS), (2, IMAGE), (3, VOLUME))},
    **{cell: ({"units": 3}, STEPS) for cell in CELLS},
}

# Arguments that this file does not compare: {argument, or (class, argument): reason}.
EXEMPT = {
    "seed": "has no effect: the run has one seed",
    "stateful": "only its default is supported",
    ("Conv1DTranspose", "dilation_rate"): "only its default is supported",
    ("Conv2DTranspose", "dilation_rate"): "only its default is supported",
    ("Conv3DTranspose", "dilation_rate"): "only its default is supported",
    ("IntegerLookup", "num_oov_indices"): "only its default is supported",
    ("IntegerLookup", "invert"): "only its default is supported",
    ("CategoryEncoding", "count_weights"): "not supported",
}
# Layers whose options another test compares, in all or in addition.
ELSEWHERE = {
    "InputLayer": "every model has one: random_models.py draws shapes, lengths and types",
    "TimeDistributed": "random_models.py draws the layer",
    **{name: "preprocessing_test.py compares its options" for name in
       ("CategoryEncoding", "Discretization", "IntegerLookup", "RandomFlip", "RandomBrightness", "RandomContrast",
        "RandomInvert", "RandomGrayscale", "RandomCrop", "RandomTranslation", "RandomRotation", "RandomZoom",
        "RandomShear")},
}
# Arguments that functions of random_models.py draw, outside of its tables.
DRAWN = {"Embedding": {"input_dim", "output_dim", "mask_zero"}, "Bidirectional": {"layer", "merge_mode"},
         "RNN": {"cell", "return_sequences", "go_backwards", "zero_output_for_mask"},
         "MultiHeadAttention": {"query", "value", "use_causal_mask"}, "Attention": {"use_causal_mask"},
         "AdditiveAttention": {"use_causal_mask"},
         "SimpleRNNCell": {"units", "activation", "use_bias", "recurrent_initializer"},
         "LSTMCell": {"units", "activation", "use_bias", "recurrent_initializer", "recurrent_activation",
                      "unit_forget_bias"},
         "GRUCell": {"units", "activation", "use_bias", "recurrent_initializer", "recurrent_activation",
                     "reset_after"}}


def call_arguments(given):
    return given if isinstance(given, dict) else {"inputs": given}


def model_of(layer, given):
    """Returns a model of this layer, whose inputs are those in the arguments of the call."""
    inputs = {}

    def tensor(value):
        if not isinstance(value, Given):
            return value
        if id(value) not in inputs:
            x = keras.Input(value.shape, name=f"{value.name}_{len(inputs)}", dtype=value.dtype)
            inputs[id(value)] = x, value.convert(x)
        return inputs[id(value)][1]

    arguments = {name: [tensor(part) for part in value] if isinstance(value, list) else tensor(value)
                 for name, value in call_arguments(given).items()}
    first = arguments.pop(next(iter(arguments)))
    outputs = keras.tree.flatten(layer(first, **arguments))
    if isinstance(layer, L.Softmax):
        # The layer's mask has more axes than that of a loss. Permute does not pass the mask on.
        outputs = [L.Permute((1, 2))(y) for y in outputs]
    elif type(layer).__name__.startswith("ConvLSTM") and "mask" in arguments:
        outputs = [ops.multiply(y, 2) for y in outputs]  # Keras cannot apply the mask of the steps to the loss
    elif arguments.get("return_attention_scores"):
        # The scores have such a mask, too. Keras infers a wrong shape for them, which Permute would store.
        outputs[-1] = ops.multiply(outputs[-1], 2)
    return keras.Model([x for x, _ in inputs.values()], outputs if len(outputs) > 1 else outputs[0])


def evaluated(arguments):
    return arguments() if callable(arguments) else arguments


class Case(random_models_test.Case):
    """A model of one layer, with weights and data."""

    def __init__(self, number, name, arguments, given):
        self.name, self.arguments, self.given = name, arguments, given
        super().__init__(number)

    def build(self):
        keras.utils.clear_session()
        keras.utils.set_random_seed(self.seed)
        made = evaluated(self.arguments)
        layer = L.RNN(L.StackedRNNCells(**made)) if self.name == "StackedRNNCells" else getattr(L, self.name)(**made)
        return model_of(layer, self.given)

    def is_random(self):
        config = str([layer.get_config() for layer in self.model.layers])
        return any(f"'{name}': 0.{digit}" in config for name in RANDOM for digit in range(1, 10))

    def wrong(self, folder):
        """Returns the differences from Keras, as texts."""
        exact, after = self.keras("float64")
        number = lambda outputs: {f"output {i}": y for i, y in enumerate(outputs)}
        self.write(folder)
        found = []
        for form in FORMS:
            ours = number(self.predict(folder, form))
            if len(ours) != len(exact):
                return [f"{form}: {len(ours)} outputs, expected {len(exact)}"]
            found += differences(ours, number(exact), lambda: number(self.keras("float32")[0]), 1e-5)
            if after and not self.is_random():
                found += differences(self.step(folder, form), after, lambda: self.keras("float32")[1], 1e-4)
        return found


class Options(unittest.TestCase):
    def test_outputs_and_a_step_equal_those_of_keras(self):
        number = 0
        for name, cases in OPTIONS.items():
            for arguments, given in cases:
                number += 1
                text = str({**evaluated(arguments), **{key: value for key, value in call_arguments(given).items()
                                                       if not isinstance(value, (Given, list))}})
                with self.subTest(layer=name, options=text, call=[*call_arguments(given)]):
                    with tempfile.TemporaryDirectory() as folder:
                        self.assertEqual(Case(number, name, arguments, given).wrong(folder), [])

    def test_each_initializer_applies_to_the_variables_of_keras(self):
        for name, (arguments, given) in INITIALIZED.items():
            for argument in keras_layers.arguments(name):
                if not argument.endswith("_initializer"):
                    continue
                with self.subTest(layer=name, argument=argument):
                    keras.utils.clear_session()
                    layer = getattr(L, name)(**arguments, **{argument: keras.initializers.Constant(0.75)})
                    model = model_of(L.RNN(layer) if name in CELLS else layer, given)
                    own = layer.name + "/"
                    wanted = {key: value for key, value in variables(model).items()
                              if own in key and (np.asarray(value) == 0.75).any()}
                    got = tool("initial-values", {"model": model.to_json(), "inputs": [[2, *x.shape[1:]]
                                                                                      for x in model.inputs]})
                    constant = {key for key, value in got.items() if own in key and 0.75 in value}
                    self.assertNotEqual(wanted, {})
                    self.assertEqual(constant, set(wanted))
                    for key, value in wanted.items():
                        np.testing.assert_array_equal(np.reshape(got[key], value.shape), value, err_msg=key)


def has_another_value(layer, argument, choices):
    """Returns whether the choices of random_models.py have a value that is not Keras' default."""
    default = {p.name: p.default for p in keras_layers.parameters(getattr(L, layer).__init__)}.get(argument)
    return callable(choices) or any(choice != default for choice in choices)


def compared(name):
    """Returns the arguments of a layer that a test uses with another value than the default."""
    drawn = {**random_models.LAYERS.get(name, ((), {}))[1], **random_models.MERGES.get(name, {})}
    found = {argument for argument, choices in drawn.items() if has_another_value(name, argument, choices)}
    found |= DRAWN.get(name, set())
    for arguments, given in OPTIONS.get(name, []):
        found |= {*evaluated(arguments), *call_arguments(given)}
    for arguments in CELLS.get(name, []):
        found |= {*arguments}
    if name in INITIALIZED:
        found |= {argument for argument in keras_layers.arguments(name) if argument.endswith("_initializer")}
    return found


# Layers that Keras applies to integers in integers, so that it rounds or overflows.
ROUND_INTEGERS = {"AdditiveAttention", "Dot", "GroupNormalization", "LayerNormalization", "RMSNormalization"}


# Layers without an operation for uint8, which overflows in Keras.
NO_UINT8 = {"Add", "Average", "Maximum", "Minimum", "Multiply", "Subtract"}


class InputTypes(unittest.TestCase):
    """Applies each layer to inputs of each type, if Keras can."""

    def test_integers_and_doubles(self):
        for dtype in ("uint8", "int32", "int64", "float64"):
            with self.subTest(dtype=dtype), tempfile.TemporaryDirectory() as folder:
                keras.utils.clear_session()
                self.check(dtype, folder)

    def accepted(self, dtype):
        """Returns {layer's name: (layer, shapes)} for the layers that Keras applies to numbers of this type."""
        found = {}
        for name in sorted(set(keras_layers.supported()) - unsupported_arguments.PARTS):
            layer, shapes = unsupported_arguments.minimal(name)
            try:
                apply(layer, [keras.Input(shape, dtype=dtype) for shape in shapes])  # creates the variables
                # Keras predicts in a graph, in which some functions reject types that they accept otherwise.
                tf.function(lambda values: apply(layer, values)).get_concrete_function(
                    [tf.TensorSpec((2, *shape), dtype) for shape in shapes])
            except (TypeError, ValueError, NotImplementedError):
                continue
            found[name] = layer, shapes
        return found

    def check(self, dtype, folder):
        inputs, outputs, arrays = {}, [], {}
        rng = np.random.default_rng(7)
        accepted = self.accepted(dtype)
        self.assertGreater(len(accepted), 60)
        for name, (layer, shapes) in accepted.items():
            if dtype != "float64" and name in ROUND_INTEGERS:
                self.assert_refused(layer, shapes, dtype, folder)
                continue
            if dtype == "uint8" and name in NO_UINT8:
                continue
            given = []
            for i, shape in enumerate(shapes):
                key = f"x_{i}_" + "_".join(map(str, shape))
                if key not in inputs:
                    inputs[key] = keras.Input(shape, dtype=dtype, name=key)
                    arrays[key] = rng.integers(0, 7, (3, *shape)).astype(dtype)
                given.append(inputs[key])
            y = ops.cast(keras.tree.flatten(apply(layer, given))[0], "float32")
            outputs.append(L.Identity(name=f"y_{name}")(y))
        model = keras.Model(list(inputs.values()), outputs)
        wanted = model.predict_on_batch([arrays[name] for name in inputs])
        model.save(f"{folder}/m.keras")
        np.savez(f"{folder}/x.npz", **arrays)
        run("predict", "--model", f"{folder}/m.keras", "--input", f"{folder}/x.npz", "--output", f"{folder}/y.npz")
        with np.load(f"{folder}/y.npz") as got:
            for output, value in zip(outputs, wanted):
                name = output._keras_history.operation.name
                if value.shape[1:] != output.shape[1:]:
                    continue  # Keras does not return the shape that it states: RandomCrop of uint8
                np.testing.assert_allclose(got[name], value, rtol=0, atol=1e-5 * max(1, np.abs(value).max()), err_msg=name)

    def assert_refused(self, layer, shapes, dtype, folder):
        inputs = [keras.Input(shape, dtype=dtype) for shape in shapes]
        keras.Model(inputs, apply(layer, inputs)).save(f"{folder}/refused.keras")
        with self.assertRaisesRegex(Refused, f"{layer.name}.*expected float values, got {dtype}"):
            run("summary", "--model", f"{folder}/refused.keras")


def apply(layer, inputs):
    if isinstance(layer, L.MultiHeadAttention):
        return layer(*inputs)
    return layer(inputs if len(inputs) > 1 else inputs[0])


class Completeness(unittest.TestCase):
    def test_every_argument_is_compared(self):
        missing = []
        for name in keras_layers.supported():
            if name in ELSEWHERE:
                continue
            rest = [argument for argument in keras_layers.arguments(name) if argument not in compared(name)]
            missing += [f"{name}: {argument}" for argument in rest
                        if argument not in EXEMPT and (name, argument) not in EXEMPT]
        self.assertEqual(missing, [], "compare them in OPTIONS, or draw them in random_models.py")

    def test_no_exemption_is_stale(self):
        names = set(keras_layers.supported())
        documented = {(name, argument) for name in names for argument in keras_layers.arguments(name)}
        stale = [key for key in EXEMPT if key not in documented and key not in {a for _, a in documented}]
        self.assertEqual(stale + sorted(set(ELSEWHERE) - names), [])
        compared_too = [key for key in EXEMPT if isinstance(key, tuple) and key[1] in compared(key[0])]
        self.assertEqual(compared_too, [], "these options are compared; remove them from EXEMPT")
