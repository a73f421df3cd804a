"""Exchanges whole models, weights and predictions with Keras and safetensors through files. Uses
the subcommands of tfjob-trainer, as users do. run.sh runs it."""
import json
import os
import re
import subprocess
import tempfile
import unittest
import zipfile

from harness import PREDICTION, RUN_SECONDS, TRAINER, check_exact, in_double, in_type, numbered, train

import numpy as np
import keras
import tensorflow as tf
import tf_keras
from safetensors import numpy as safetensors

from interop_test import attention, functional, images, randomize, recurrent, variables, volumes


def run(*arguments):
    """Runs tfjob-trainer. Returns what it prints to standard output."""
    done = subprocess.run([TRAINER, *arguments], capture_output=True, text=True, timeout=RUN_SECONDS)
    if done.returncode != 0:
        raise AssertionError(f"tfjob-trainer {' '.join(arguments)}: {done.returncode}\n{done.stderr}{done.stdout}")
    return done.stdout


def sequential(library):
    """Returns a Sequential model with a nested one, a frozen layer and a layer without weights."""
    L = library.layers
    inner = library.Sequential([library.Input((6,)), L.Dense(5, activation="relu"), L.BatchNormalization()], name="inner")
    frozen = L.Dense(4, activation="tanh")
    frozen.trainable = False
    return library.Sequential([library.Input((6,)), L.Dense(6), inner, frozen, L.Dropout(0.5), L.Dense(3)], name="outer")


def models(library):
    return [sequential(library), *functional(library), *images(library)[:3]]


def models_of_all_kinds(library):
    return [*models(library), *recurrent(library), *attention(library), volumes(library)]


def adapted(library, rng):
    """Returns a model whose Normalization layers have adapted to data."""
    data = 5 * rng.random((20, 3, 4), dtype=np.float32) + 2
    layers = [library.layers.Normalization(axis=axis, invert=invert, name=name)
              for axis, invert, name in ((-1, False, "last"), ((1, 2), False, "both"), (None, True, "all"))]
    for layer in layers:
        layer.adapt(data)
    return library.Sequential([library.Input((3, 4)), *layers, library.layers.Dense(2, name="dense")], name="adapted")


def inputs_of(model, rng, count=7):
    return [rng.standard_normal((count, *tensor.shape[1:])).astype(np.float32) for tensor in model.inputs]


def input_names(model):
    return [tensor.name.split(":")[0] for tensor in model.inputs]


class Files(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.rng = np.random.default_rng(11)

    def path(self, name):
        return os.path.join(self.folder, name)

    def prepared(self, library, made=models):
        for model in made(library):
            randomize(model, self.rng, 0.3)
            yield model

    def check_prediction(self, library, model, batch_size, *arguments):
        """Compares the trainer's predictions with those of Keras in float64."""
        inputs = inputs_of(model, self.rng)
        flags = []
        for name, array in zip(input_names(model), inputs):
            np.save(self.path(f"{name}.npy"), array)
            # Keras uses different names for the only input of a Sequential model in memory and in
            # files.
            flags += ["--input", f"{name}={self.path(name)}.npy" if len(inputs) > 1 else self.path(f"{name}.npy")]
        output = self.path("predictions.npz")
        run("predict", *arguments, *flags, "--output", output, "--batch-size", str(batch_size))
        outputs = lambda model: numbered(model(inputs if len(inputs) > 1 else inputs[0], training=False))
        exact = in_type("float64", lambda: outputs(in_double(library, model)), library)
        with np.load(output) as ours:
            if len(exact) > 1 and len(set(model.output_names)) == len(exact):
                self.assertEqual(sorted(ours.files), sorted(model.output_names))
            got = numbered([ours[name] for name in ours.files])
        self.assertEqual([y.shape for y in got.values()], [y.shape for y in exact.values()])
        check_exact(self, got, exact, lambda: outputs(model), PREDICTION, f"{model.name} {arguments}")

    def test_predictions_are_those_of_keras(self):
        for number, model in enumerate(self.prepared(keras)):
            with self.subTest(model=model.name):
                whole, weights, architecture = self.path("m.keras"), self.path("m.weights.h5"), self.path("m.json")
                model.save(whole)
                model.save_weights(weights)
                with open(architecture, "w") as file:
                    file.write(model.to_json())
                self.check_prediction(keras, model, 1 + number % 4, "--model", whole)
                self.check_prediction(keras, model, 3, "--model", architecture, "--weights", weights)
                older = self.path("m.h5")
                model.save(older)
                self.check_prediction(keras, model, 32, "--model", older)

    def test_predictions_are_those_of_tf_keras(self):
        for model in self.prepared(tf_keras):
            with self.subTest(model=model.name):
                older, weights, architecture = self.path("t.h5"), self.path("t_weights.h5"), self.path("t.json")
                model.save(older)
                model.save_weights(weights)
                with open(architecture, "w") as file:
                    file.write(model.to_json())
                self.check_prediction(tf_keras, model, 4, "--model", older)
                self.check_prediction(tf_keras, model, 4, "--model", architecture, "--weights", weights)
                whole = self.path("t.keras")
                model.save(whole)
                self.check_prediction(tf_keras, model, 4, "--model", whole)

    def test_keras_loads_what_we_write_with_equal_bits(self):
        for model in self.prepared(keras, models_of_all_kinds):
            with self.subTest(model=model.name):
                source = self.path("m.keras")
                model.save(source)
                expected = model.get_weights()
                for name in ("ours.keras", "ours.h5"):
                    run("export", "--model", source, "--to", self.path(name))
                    loaded = keras.models.load_model(self.path(name), compile=False)
                    self.assert_equal(loaded.get_weights(), expected)
                run("export", "--model", source, "--to", self.path("ours.weights.h5"))
                randomize(model, self.rng, 1.0)
                model.load_weights(self.path("ours.weights.h5"))
                self.assert_equal(model.get_weights(), expected)

    def assert_equal(self, ours, theirs):
        self.assertEqual([array.shape for array in ours], [array.shape for array in theirs])
        for one, other in zip(ours, theirs):
            self.assertEqual((one.dtype, one.tobytes()), (other.dtype, other.tobytes()))

    def test_adapted_statistics_are_read_and_written_and_not_trained(self):
        for library in keras, tf_keras:
            model = adapted(library, self.rng)
            for suffix in ("keras", "h5", "weights.h5"):
                with self.subTest(library=library.__name__, suffix=suffix):
                    file, config = self.path(f"a.{suffix}"), self.path("training.json")
                    model.save_weights(file) if suffix == "weights.h5" else model.save(file)
                    with open(self.path("a.json"), "w") as to:
                        to.write(model.to_json())
                    architecture = self.path("a.json") if suffix == "weights.h5" else file
                    self.check_prediction(library, model, 3, "--model", architecture, "--weights", file)
                    np.savez(self.path("train.npz"), x=self.rng.random((8, 3, 4), dtype=np.float32),
                             y=self.rng.random((8, 3, 2), dtype=np.float32))
                    folder = self.path(f"{library.__name__}-{suffix}")
                    with open(config, "w") as to:
                        json.dump({"model": {"file": architecture, "weights": file}, "loss": "mean_squared_error",
                                   "data": {"train": {"format": "npz", "file": self.path("train.npz")}},
                                   "optimizer": {"name": "adam", "learning_rate": 0.1}, "max_steps": 2, "batch_size": 4,
                                   "model_dir": folder}, to)
                    run("--config", config)
                    reader = tf.train.load_checkpoint(folder)
                    for name, value in variables(model).items():
                        same = reader.get_tensor(name).tobytes() == np.asarray(value).tobytes()
                        self.assertEqual(same, not name.startswith("dense"), name)
                    for written in ("ours.keras", "ours.h5", "ours.weights.h5", "ours.safetensors"):
                        run("export", "--model", architecture, "--weights", file, "--to", self.path(written))
                    if library is keras:
                        for written in ("ours.keras", "ours.h5"):
                            loaded = keras.models.load_model(self.path(written), compile=False)
                            self.assert_equal(loaded.get_weights(), model.get_weights())
                    self.assert_equal_by_name(safetensors.load_file(self.path("ours.safetensors")), variables(model))

    def test_safetensors_have_equal_bits_in_both_directions(self):
        for library in keras, tf_keras:
            for model in self.prepared(library, models_of_all_kinds if library is keras else models):
                with self.subTest(model=model.name, library=library.__name__):
                    expected = variables(model)
                    model.save(self.path("m.keras"))
                    run("export", "--model", self.path("m.keras"), "--to", self.path("m.safetensors"))
                    self.assert_equal_by_name(safetensors.load_file(self.path("m.safetensors")), expected)
                    safetensors.save_file(expected, self.path("theirs.safetensors"))
                    with open(self.path("m.json"), "w") as file:
                        file.write(model.to_json())
                    theirs = ("--model", self.path("m.json"), "--weights", self.path("theirs.safetensors"))
                    run("export", *theirs, "--to", self.path("again.safetensors"))
                    self.assert_equal_by_name(safetensors.load_file(self.path("again.safetensors")), expected)
                    self.check_prediction(library, model, 5, *theirs)

    def assert_equal_by_name(self, ours, theirs):
        self.assertEqual(sorted(ours), sorted(theirs))
        self.assert_equal([ours[name] for name in theirs], list(theirs.values()))

    def test_training_starts_from_the_weights_of_keras(self):
        model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1, name="d")])
        randomize(model, self.rng, 1.0)
        for name in ("w.keras", "w.h5", "w.weights.h5"):
            model.save_weights(self.path(name)) if ".weights." in name else model.save(self.path(name))
            folder = self.path(f"{name}-model")
            train({"model": {"layers": [{"Dense": {"units": 1, "name": "d"}}], "weights": self.path(name)},
                   "loss": "mean_squared_error", "optimizer": {"name": "sgd", "learning_rate": 0},
                   "data": {"train": {"format": "linear"}}, "max_steps": 1, "model_dir": folder})
            reader = tf.train.load_checkpoint(folder)
            self.assertEqual(reader.get_tensor("d/kernel").tobytes(), model.layers[0].kernel.numpy().tobytes())
            self.assertEqual(reader.get_tensor("d/bias").tobytes(), model.layers[0].bias.numpy().tobytes())

    def test_a_trained_model_is_exported_and_predicts(self):
        config, folder = self.path("training.yaml"), self.path("model")
        with open(config, "w") as file:
            json.dump({"model": {"layers": [{"InputLayer": {"batch_shape": [None, 1]}},
                                            {"Dense": {"units": 3, "activation": "tanh"}}, {"Dense": {"units": 1}}]},
                       "loss": "mean_squared_error", "optimizer": "adam", "data": {"train": {"format": "linear"}},
                       "max_steps": 20, "model_dir": folder}, file)
        run("--config", config)
        run("export", "--model", config, "--to", self.path("last.keras"))
        run("export", "--model", config, "--weights", f"{folder}/model.ckpt-0", "--to", self.path("first.keras"))
        last, first = (keras.models.load_model(self.path(f"{name}.keras")) for name in ("last", "first"))
        reader = tf.train.load_checkpoint(folder)
        for name, array in variables(last).items():
            self.assertEqual(reader.get_tensor(name).tobytes(), array.tobytes(), name)
        self.assertNotEqual(first.get_weights()[0].tobytes(), last.get_weights()[0].tobytes())
        rows = self.rng.standard_normal((6, 1)).astype(np.float32)
        np.savetxt(self.path("rows.csv"), rows, fmt="%.9g")
        run("predict", "--model", config, "--input", self.path("rows.csv"), "--output", self.path("out.csv"))
        exact = in_type("float64", lambda: numbered(in_double(keras, last)(rows)))
        check_exact(self, numbered(np.loadtxt(self.path("out.csv"))), exact, lambda: numbered(last(rows)), PREDICTION)

    def test_predictions_with_object_based_checkpoints(self):
        for library in tf_keras, keras:
            for model in list(self.prepared(library))[:3]:
                with self.subTest(model=model.name, library=library.__name__):
                    prefix = self.path("object.ckpt")
                    if library is keras:
                        prefix = tf.train.Checkpoint(model=model).write(prefix)
                    else:
                        model.save_weights(prefix)
                    with open(self.path("m.json"), "w") as file:
                        file.write(model.to_json())
                    self.check_prediction(library, model, 4, "--model", self.path("m.json"), "--weights", prefix)

    def test_what_does_not_fit_is_refused(self):
        model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(3, name="d"), keras.layers.Dense(1, name="e")])
        whole, cut, output = self.path("m.keras"), self.path("cut.keras"), self.path("out.npy")
        model.save(whole)
        with open(whole, "rb") as file:
            content = file.read()
        with open(cut, "wb") as file:
            file.write(content[:len(content) * 2 // 3])
        bomb = self.path("bomb.keras")
        with zipfile.ZipFile(whole) as source, zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as target:
            target.writestr("config.json", source.read("config.json"))
            with target.open("model.weights.h5", "w") as member:
                for _ in range(257):
                    member.write(bytes(1 << 20))
        np.save(self.path("x.npy"), np.zeros((4, 2), np.float32))
        np.save(self.path("wide.npy"), np.zeros((4, 5), np.float32))
        safetensors.save_file({"d/kernel": np.zeros((2, 4), np.float32)}, self.path("other.safetensors"))
        with open(output, "w") as file:
            file.write("before")
        for flags, code, message in [
                (["--model", cut, "--input", self.path("x.npy")], {1, 2}, "cut.keras"),
                (["--model", bomb, "--input", self.path("x.npy")], {2}, "more than a hundred times as many"),
                (["--model", whole, "--input", self.path("wide.npy")], {2}, r"have the shape \[5\], but the model expects \[2\]"),
                (["--model", whole, "--input", "y=" + self.path("x.npy")], {2}, "array y belongs to no input"),
                (["--model", whole, "--weights", self.path("other.safetensors"), "--input", self.path("x.npy")], {2},
                 r"d/kernel is float32\[2,4\] there, but float32\[2,3\] in the model"),
                (["--model", self.path("none.keras"), "--input", self.path("x.npy")], {1}, "none.keras"),
                (["--model", self.path("x.npy"), "--input", self.path("x.npy")], {2}, "x.npy")]:
            done = subprocess.run([TRAINER, "predict", *flags, "--output", output], capture_output=True, text=True, timeout=RUN_SECONDS)
            self.assertIn(done.returncode, code, done.stderr + done.stdout)
            self.assertRegex(done.stderr + done.stdout, message)
            with open(output) as file:
                self.assertEqual(file.read(), "before")

    def test_summaries_have_the_rows_of_keras(self):
        for model in models_of_all_kinds(keras):
            with self.subTest(model=model.name):
                model.save(self.path("m.keras"))
                text = run("summary", "--model", self.path("m.keras"))
                rows = {cells[0]: cells[1:3] for cells in (re.split("  +", line) for line in text.splitlines())
                        if len(cells) >= 3}
                # A shared layer has a row per call, and a nested model has the rows of its layers.
                once = [layer for layer in model.layers
                        if len(layer._inbound_nodes) == 1 and not isinstance(layer, keras.Model)]
                self.assertTrue(once)
                for layer in once:
                    shapes = " ".join(str(output.shape) for output in keras.tree.flatten(layer.output))
                    self.assertEqual(rows[f"{layer.name} ({type(layer).__name__})"],
                                     [shapes, f"{layer.count_params():,}"])
                trained = sum(int(np.prod(weight.shape)) for weight in model.trainable_weights)
                self.assertIn(f"Trainable params: {trained:,} ", text)
                self.assertIn(f"Non-trainable params: {model.count_params() - trained:,} ", text)

    def test_evaluation_and_summary_are_those_of_keras(self):
        model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(3, activation="tanh"), keras.layers.Dense(1)])
        model.compile(loss="mse")
        rows = self.rng.standard_normal((50, 3)).astype(np.float32)
        np.savetxt(self.path("rows.csv"), rows, delimiter=",", header="a,b,y", comments="", fmt="%.9g")
        model.save(self.path("m.keras"))
        source = {"format": "csv", "file": self.path("rows.csv")}
        with open(self.path("training.yaml"), "w") as file:
            json.dump({"model": {"file": self.path("m.keras")}, "loss": "mean_squared_error", "max_steps": 1,
                       "data": {"train": source, "eval": source}}, file)
        text = run("evaluate", "--model", self.path("training.yaml"), "--weights", self.path("m.keras"))
        ours = dict(line.split() for line in text.splitlines())
        theirs = model.evaluate(rows[:, :2], rows[:, 2:], verbose=0)
        self.assertEqual(ours["examples"], "50")
        self.assertAlmostEqual(float(ours["loss"]), theirs, delta=1e-5 * theirs)
        self.assertIn(f"Total params: {model.count_params()} ", run("summary", "--model", self.path("m.keras")))
        self.assertIn(f"Total params: {model.count_params()} ", run("summary", "--model", self.path("training.yaml")))
