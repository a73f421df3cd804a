"""Finds the arguments of Keras' layers, and the values of arguments, that this project rejects: it changes one argument
at a time in the JSON of a small model, and reads the model with interop_tool."""
import inspect
import json
import random
import subprocess

from harness import RUN_SECONDS, TOOL

import keras

import keras_layers
import random_models

L = keras.layers
SHAPES = {2: (4,), 3: (5, 4), 4: (6, 5, 4), 5: (4, 6, 5, 4), 6: (3, 4, 6, 5, 4)}
PAIR = [(5, 4), (5, 4)]
# Arguments of every layer, which have sections of their own in docs/training-file.md, and those of base classes, which
# subclasses set.
COMMON = {"name", "dtype", "trainable", "autocast", "rank", "pool_dimensions", "pool_mode", "activity_regularizer",
          "bounding_box_format", "layer", "gptq_unpacked_column_size"}
# Arguments of the base classes of these layers, which the layers themselves set.
INTERNAL = {name: {"cell"} for name in ("SimpleRNN", "LSTM", "GRU", "ConvLSTM1D", "ConvLSTM2D", "ConvLSTM3D")}
INTERNAL |= {name: {"factor", "data_format"} for name in ("Resizing", "CenterCrop", "RandomCrop", "RandomFlip",
                                                         "RandomTranslation", "RandomZoom", "RandomShear")}
# Values to try for an argument, apart from the opposite of a flag. The values of choices are those of Keras.
TRIED = {
    "data_format": ["channels_first"], "interpolation": ["nearest", "bilinear", "bicubic", "lanczos3", "lanczos5"],
    "fill_mode": ["reflect", "wrap", "constant", "nearest"], "dilation_rate": [2], "groups": [2],
    "padding": ["valid", "same", "causal"], "merge_mode": ["sum", "mul", "concat", "ave", None],
    "score_mode": ["dot", "concat"], "attention_axes": [[2]], "num_oov_indices": [2], "implementation": [1, 2],
    "output_mode": ["int", "one_hot", "multi_hot", "count", "tf_idf"], "num_bins": [4], "num_spatial_bins": [4],
    "weights": [[[0.0] * 4] * 7], "noise_shape": [[4, 1, 4]], "sparse": [True], "input_length": [5],
    "lora_rank": [2], "lora_alpha": [3], "quantization_config": [{"class_name": "Int8QuantizationConfig", "config": {}}],
    "use_cudnn": [True, False], "flash_attention": [True], "vocabulary_dtype": ["int32"],
    "idf_weights": [[1.0, 1.0, 1.0]], "pad_to_max_tokens": [True], "mask_token": [0], "max_tokens": [9],
    "synchronized": [True], "ragged": [True], "optional": [True], "epsilon": [0.01, 0.2], "output_padding": [1],
    "renorm_clipping": [{"rmax": 2.0}], "renorm_momentum": [0.5], "oov_method": ["hash"], "salt": [3],
    "batch_size": [3],
}
# Values of other arguments without which Keras rejects each value of an argument.
WITH = {"output_padding": {"strides": 2}}
# {class: arguments}: Keras rejects the values to try (those that only another output_mode, a list of ids or a library for
# quantization allows, and those of base classes, which subclasses set), or the minimal layer already has them.
UNFIT = {
    **{name: {"quantization_config"} for name in ("Dense", "EinsumDense")}, "Embedding": {"quantization_config", "weights"},
    "BatchNormalization": {"scale"}, "LayerNormalization": {"scale"}, "GroupNormalization": {"groups"},
    "Discretization": {"sparse"},
    "IntegerLookup": {"vocabulary_dtype", "idf_weights", "sparse", "pad_to_max_tokens", "oov_method", "salt"},
    **{f"SpatialDropout{rank}D": {"noise_shape"} for rank in (1, 2, 3)},
    **{f"ZeroPadding{rank}D": {"padding"} for rank in (1, 2, 3)},
}
# Layers that are used only as parts of others. The arguments of cells are those of the layers.
PARTS = {"InputLayer", "StackedRNNCells", "SimpleRNNCell", "LSTMCell", "GRUCell"}
# {class: (arguments, or a function that returns them; shapes of the inputs)} for the layers that random_models.py does
# not list in its tables.
MINIMAL = {
    "Embedding": ({"input_dim": 7, "output_dim": 4}, [(5,)]),
    "GroupNormalization": ({"groups": 2}, [(5, 4)]),
    "EinsumDense": ({"equation": "abc,cd->abd", "output_shape": (None, 3)}, [(5, 4)]),
    "MultiHeadAttention": ({"num_heads": 2, "key_dim": 3}, [(3, 5, 4), (3, 5, 4)]),
    "CategoryEncoding": ({"num_tokens": 7}, [(5,)]), "Discretization": ({"bin_boundaries": [0.0, 1.0]}, [(5,)]),
    "IntegerLookup": ({"vocabulary": [1, 2, 3]}, [(5,)]), "RandomFlip": ({}, [(6, 5, 3)]),
    "RandomCrop": ({"height": 3, "width": 3}, [(6, 5, 3)]),
    **{name: ({"height_factor": 0.1, "width_factor": 0.1}, [(6, 5, 3)]) for name in ("RandomTranslation", "RandomZoom")},
    "RNN": (lambda: {"cell": L.SimpleRNNCell(3)}, [(5, 4)]), "Bidirectional": (lambda: {"layer": L.LSTM(3)}, [(5, 4)]),
    "TimeDistributed": (lambda: {"layer": L.Dense(3)}, [(5, 4)]),
    "RandomRotation": ({"factor": 0.1}, [(6, 5, 3)]), "RandomShear": ({}, [(6, 5, 3)]),
    "RandomInvert": ({}, [(6, 5, 3)]), "RandomGrayscale": ({}, [(6, 5, 3)]),
}


def minimal(name):
    """Returns a layer with few arguments, and the shapes of its inputs."""
    if name in MINIMAL:
        arguments, shapes = MINIMAL[name]
        return getattr(L, name)(**(arguments() if callable(arguments) else arguments)), shapes
    if name in random_models.MERGES:
        return getattr(L, name)(**({"axes": 1} if name == "Dot" else {})), PAIR
    ranks, options = random_models.LAYERS[name]
    shape = SHAPES[ranks[0]]
    drawn = {key: choices for key, choices in options.items() if key in random_models.REQUIRED}
    return getattr(L, name)(**random_models.arguments(random.Random(0), drawn, (None, *shape))), [shape]


def signature(made):
    """Returns the arguments of a class and of its base classes, with their defaults."""
    found = {}
    for one in made.__mro__:
        if one is L.Layer:
            break
        for parameter in inspect.signature(one.__init__).parameters.values() if "__init__" in vars(one) else ():
            if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD) and parameter.name != "self":
                found.setdefault(parameter.name, parameter.default)
    unused = COMMON | INTERNAL.get(made.__name__, set())
    return {name: default for name, default in found.items()
            if name not in unused and not name.endswith(("_regularizer", "_constraint", "_initializer"))}


def tried(name, default):
    if name in TRIED:
        return [value for value in TRIED[name] if value != default]
    return [not default] if isinstance(default, bool) else []


def accepts(model, config):
    """Returns whether interop_tool reads the model with this config of its last layer."""
    changed = json.loads(json.dumps(model))
    changed["config"]["layers"][-1]["config"] = config
    shapes = [layer["config"]["batch_shape"] for layer in model["config"]["layers"]
              if layer["class_name"] == "InputLayer"]
    request = {"model": json.dumps(changed), "inputs": [[2, *shape[1:]] for shape in shapes]}
    done = subprocess.run([TOOL, "initial-values"], input=json.dumps(request), capture_output=True, text=True,
                          timeout=RUN_SECONDS)
    return done.returncode == 0


def called(layer, shapes):
    inputs = [keras.Input(shape, name=f"x{i}") for i, shape in enumerate(shapes)]
    if isinstance(layer, L.MultiHeadAttention):
        return keras.Model(inputs, layer(*inputs))
    return keras.Model(inputs, layer(inputs if len(inputs) > 1 else inputs[0]))


def of_layer(name):
    """Returns the rejected values of a layer's arguments: [(argument, value), …]. Does not try values that Keras
    rejects."""
    keras.utils.clear_session()
    layer, shapes = minimal(name)
    model = json.loads(called(layer, shapes).to_json())
    config = model["config"]["layers"][-1]["config"]
    if not accepts(model, config):
        raise AssertionError(f"{name} is rejected with {config}")
    found = []
    for argument, default in signature(type(layer)).items():
        for value in tried(argument, default):
            if not fits(layer, shapes, argument, value):
                continue
            changed = {**config, **WITH.get(argument, {}), argument: value}
            if not accepts(model, changed):
                found.append((argument, value))
    return found


def fits(layer, shapes, argument, value):
    """Returns whether Keras accepts the value. channels_first and stateful count as accepted: they work on some
    processors, and with a given batch size."""
    if argument in ("data_format", "stateful"):
        return True
    try:
        changed = type(layer).from_config({**layer.get_config(), **WITH.get(argument, {}), argument: value})
        called(changed, shapes)
        return argument not in changed.get_config() or changed.get_config()[argument] != layer.get_config().get(argument)
    except Exception:  # Keras may raise any type of error for what does not fit
        return False


def untried(name):
    """Returns the arguments of a layer for which there is no value to try."""
    layer, _ = minimal(name)
    return [argument for argument, default in signature(type(layer)).items() if not tried(argument, default)]


def unfit(name):
    """Returns the arguments of a layer for which Keras accepts none of the values to try."""
    keras.utils.clear_session()
    layer, shapes = minimal(name)
    values = {argument: tried(argument, default) for argument, default in signature(type(layer)).items()}
    return [argument for argument, choices in values.items()
            if choices and not any(fits(layer, shapes, argument, value) for value in choices)]


def rows(supported):
    """Returns the rejected arguments, or values of arguments, and the layers that reject them: [(text, layers), …]."""
    found = {}
    for name in sorted(set(supported) - PARTS):
        for argument, value in of_layer(name):
            with_value = isinstance(value, (str, bool)) or argument in keras_layers.arguments(name)
            text = f"{argument}={json.dumps(value)}" if with_value else argument
            text = text.replace("=true", "=True").replace("=false", "=False")
            found.setdefault(text, []).append(name)
    return sorted(found.items())
