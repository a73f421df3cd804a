"""Runs interop_tool and tfjob-trainer, whose paths run.sh sets in the environment, compares numbers
with those of Keras in float64, and reads event files with TensorBoard.

Import this module before TensorFlow, because TensorFlow reads its settings from the environment
when it is loaded."""
import contextlib
import json
import os
import subprocess
import tempfile
from unittest import mock

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

import numpy as np
import keras
import tensorflow as tf
from tensorboard.backend.event_processing import event_accumulator

TOOL = os.environ["INTEROP_TOOL"]
TRAINER = os.environ["INTEROP_TRAINER"]
RUN_SECONDS = 600  # a program may take minutes on a busy machine
# The bounds of differences() for predictions, and for variables after a step.
PREDICTION, STEP = 1e-5, 1e-4


def tool(verb, request):
    """Calls interop_tool with a verb and a JSON request. Returns its JSON output."""
    done = subprocess.run([TOOL, verb], input=json.dumps(request), capture_output=True, text=True, timeout=RUN_SECONDS)
    if done.returncode != 0:
        raise AssertionError(f"{verb} failed: {done.stderr}")
    return json.loads(done.stdout)


def train(keys):
    """Runs tfjob-trainer as a single task, with these keys as its training file. Returns its
    log."""
    environment = {name: value for name, value in os.environ.items()
                   if name != "TF_CONFIG" and not name.startswith("TFJOB_")}
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        json.dump(keys, file)
        file.flush()
        done = subprocess.run([TRAINER, f"--config={file.name}"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              text=True, timeout=RUN_SECONDS, env=environment)
    if done.returncode != 0:
        raise AssertionError(f"tfjob-trainer ended with {done.returncode}:\n{done.stdout}")
    return done.stdout


def as_json(array):
    return {"dtype": array.dtype.name, "shape": list(array.shape), "values": array.reshape(-1).tolist()}


def as_array(value):
    return np.array(value["values"], dtype=value["dtype"]).reshape(value["shape"])


def graph(folder):
    """Returns the nodes of the graph that TensorBoard finds in a folder, by name."""
    seen = event_accumulator.EventAccumulator(folder)
    seen.Reload()
    return {node.name: node for node in seen.Graph().node}


def scalars(folder):
    """Returns the scalars that TensorBoard finds in a folder: {tag: [(step, value), …]}."""
    seen = event_accumulator.EventAccumulator(folder)
    seen.Reload()
    return {tag: [(event.step, event.value) for event in seen.Scalars(tag)] for tag in seen.Tags()["scalars"]}


def in_type(floatx, make, library=keras):
    """Calls a function with this type as the floatx and the default policy of Keras or tf_keras."""
    before = library.backend.floatx()

    def use(name):
        library.backend.set_floatx(name)
        library.mixed_precision.set_global_policy(name)

    use(floatx)
    try:
        with volumes_pooled_as_planes():
            return make()
    finally:
        use(before)


def volumes_pooled_as_planes():
    """Returns a context within which TensorFlow pools volumes in float64, too, and not only in float32: it pools their
    planes, and then the results along the depth. This also gives the right mean for a window that a border cuts off."""
    stack = contextlib.ExitStack()
    for name, planes in (("max_pool", tf.nn.max_pool2d), ("avg_pool", tf.nn.avg_pool2d)):
        for module in (tf.nn, tf.compat.v2.nn):  # Keras and tf_keras
            for of_volumes in (name, f"{name}3d"):
                original = getattr(module, of_volumes)
                stack.enter_context(mock.patch.object(module, of_volumes, pooling(original, planes)))
    stack.enter_context(mock.patch.object(tf.nn, "pool", pooling_by_type(tf.nn.pool)))
    return stack


def pooling_by_type(original):
    def pool(input, window_shape, pooling_type, strides=None, padding="VALID", data_format=None, **others):
        if tf.convert_to_tensor(input).dtype != tf.float64 or len(window_shape) != 3:
            return original(input, window_shape, pooling_type, strides, padding, data_format, **others)
        assert not others and data_format == "NDHWC", (others, data_format)
        return getattr(tf.nn, f"{pooling_type.lower()}_pool3d")(input, window_shape, strides or 1, padding)
    return pool


def pooling(original, planes):
    def pool(input, ksize, strides, padding, data_format="NDHWC", name=None):
        x = tf.convert_to_tensor(input)
        if x.dtype != tf.float64 or x.shape.rank != 5:
            return original(input, ksize, strides, padding, data_format, name)
        assert data_format == "NDHWC", data_format
        sizes, steps = ([each] * 3 if isinstance(each, int) else list(each)[-4:-1] if len(each) == 5 else list(each)
                        for each in (ksize, strides))
        _, depth, height, width, channels = x.shape
        x = planes(tf.reshape(x, (-1, height, width, channels)), sizes[1:], steps[1:], padding)
        _, height, width, _ = x.shape
        x = planes(tf.reshape(x, (-1, depth, height * width, channels)), [sizes[0], 1], [steps[0], 1], padding)
        return tf.reshape(x, (-1, x.shape[1], height, width, channels))
    return pool


def in_double(library, model):
    """Returns a copy of a model that computes in float64. Call this function in in_type."""
    copy = library.models.model_from_json(model.to_json().replace('"float32"', '"float64"'))
    return with_weights(copy, [np.asarray(weight) for weight in model.get_weights()])


def with_weights(model, weights):
    """Sets the weights of a model, and returns it. An adapted layer keeps constants that Keras computes from them."""
    model.set_weights(weights)
    for layer in model._flatten_layers():
        if hasattr(layer, "finalize_state"):
            layer.finalize_state()
    return model


def listed(value):
    return list(value) if isinstance(value, (list, tuple)) else [value]


def numbered(outputs):
    """Returns the outputs of a model as float64, for differences()."""
    return {f"output {i}": np.asarray(y, np.float64) for i, y in enumerate(listed(outputs))}


def differences(ours, exact, single, bound):
    """Compares arrays with those of Keras in float64, by name. Returns a text for each array whose largest error
    exceeds both `bound` times its largest value and twice the error of Keras' own values in float32. `single` returns
    these, and is called only if needed."""
    found, theirs = [], None
    for name, wanted in exact.items():
        got = np.asarray(ours[name], np.float64).reshape(wanted.shape)
        distance, scale = np.abs(got - wanted).max(initial=0), np.abs(wanted).max(initial=0)
        if distance <= bound * scale:
            continue
        theirs = theirs or single()
        own = np.abs(np.asarray(theirs[name], np.float64).reshape(wanted.shape) - wanted).max(initial=0)
        if not distance <= 2 * own:
            found.append(f"{name}: ours differs by {distance:.3g}, Keras' float32 by {own:.3g}, of {scale:.3g}")
    return found


def check_exact(test, ours, exact, single, bound, about=""):
    """Fails the test if either side lacks an array, or if differences() finds any."""
    test.assertEqual(sorted(ours), sorted(exact), about)
    test.assertEqual(differences(ours, exact, single, bound), [], about)
