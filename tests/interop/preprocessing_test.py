"""Compares preprocessing layers with those of Keras, through .keras files. run.sh runs it."""
import os
import tempfile
import unittest

from files_test import run
from harness import train

import numpy as np
import keras
import tensorflow as tf

L, ops = keras.layers, keras.ops
RNG = np.random.default_rng(17)
IDS = RNG.integers(-2, 12, (5, 6)).astype(np.int32)
COLUMN = RNG.integers(0, 5, (5, 1)).astype(np.int32)
NUMBERS = np.concatenate([RNG.standard_normal((5, 5)), np.ones((5, 1))], axis=1).astype(np.float32)
IMAGES = (255 * RNG.random((3, 7, 5, 2))).astype(np.float32)
WIDE = (255 * RNG.random((2, 4, 11, 3))).astype(np.float32)


def categories():
    for mode in ("one_hot", "multi_hot", "count"):
        yield IDS.clip(0), L.CategoryEncoding(9, output_mode=mode)
        yield COLUMN, L.CategoryEncoding(5, output_mode=mode)
    yield COLUMN.astype(np.float32) + np.float32(0.7), L.CategoryEncoding(5, output_mode="one_hot")
    for mode in ("int", "one_hot", "multi_hot", "count"):
        yield NUMBERS, L.Discretization([-1.0, 0.0, 0.25, 1.0], output_mode=mode)
        yield IDS, L.Discretization([0.5, 3.0, 7.0], output_mode=mode)
        yield IDS, L.IntegerLookup(vocabulary=[3, 7, 0, 10], output_mode=mode)
        yield COLUMN, L.IntegerLookup(vocabulary=[3, 4], oov_token=-5, output_mode=mode, max_tokens=9)
    yield IDS, L.IntegerLookup(vocabulary=[3, 7, -2], mask_token=0)
    adapted = L.Discretization(num_bins=4)
    adapted.adapt(NUMBERS)
    yield NUMBERS, adapted


def sizes():
    for images in (IMAGES, WIDE):
        for height, width in ((7, 5), (4, 11), (3, 2), (14, 9), (1, 1), (5, 5), (2, 13)):
            yield images, L.CenterCrop(height, width)
            for name in ("bilinear", "nearest", "bicubic", "lanczos3", "lanczos5"):
                for antialias in (False, True):
                    yield images, L.Resizing(height, width, interpolation=name, antialias=antialias)
            yield images, L.Resizing(height, width, crop_to_aspect_ratio=True)
            yield images, L.Resizing(height, width, pad_to_aspect_ratio=True, fill_value=9.0)
            yield images, L.Resizing(height, width, pad_to_aspect_ratio=True)


def augmentations():
    yield IMAGES, L.RandomFlip("horizontal")
    yield IMAGES, L.RandomFlip("vertical", seed=3)
    yield IMAGES, L.RandomFlip()
    yield IMAGES, L.RandomBrightness(0.2)
    yield IMAGES, L.RandomBrightness((-0.1, 0.3), value_range=(0.0, 1.0))
    yield IMAGES, L.RandomContrast(0.2)
    yield IMAGES, L.RandomContrast((0.1, 0.5), value_range=(0, 1))
    yield IMAGES, L.RandomInvert(0.5, value_range=(0, 1))
    yield WIDE, L.RandomGrayscale(0.3)
    yield IMAGES, L.RandomTranslation(0.1, (-0.3, 0.2), fill_mode="wrap", interpolation="nearest")
    yield IMAGES, L.RandomRotation(0.1, fill_mode="constant", fill_value=3.0)
    yield IMAGES, L.RandomZoom((-0.2, 0.3), fill_mode="nearest")
    yield IMAGES, L.RandomZoom(0.2, (0.1, 0.3))
    yield IMAGES, L.RandomShear(0.2, (0.1, 0.3))


def transforms():
    """Returns layers that move pixels. The bounds of each random factor are equal, so the results
    are not random."""
    for mode in ("reflect", "wrap", "constant", "nearest"):
        for name in ("bilinear", "nearest"):
            options = {"fill_mode": mode, "interpolation": name, "fill_value": 30.0}
            yield L.RandomTranslation((0.23, 0.23), (-0.37, -0.37), **options)
            yield L.RandomRotation((0.1, 0.1), **options)
            yield L.RandomZoom((0.4, 0.4), **options)
            yield L.RandomZoom((-0.3, -0.3), (0.9, 0.9), **options)
    yield L.RandomInvert((1.0, 1.0), value_range=(0, 200))
    yield L.RandomGrayscale(1.0)


class Preprocessing(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def check(self, cases):
        """Compares the predictions of a model with one output per case and one input per array:
        those of Keras, those of the trainer, and those of Keras with the file that the trainer
        writes."""
        arrays, inputs, outputs = {}, {}, []
        for i, (array, layer) in enumerate(cases):
            if id(array) not in inputs:
                name = f"x{len(inputs)}"
                inputs[id(array)] = keras.Input(array.shape[1:], dtype=array.dtype.name, name=name)
                arrays[name] = array
            y = ops.cast(layer(inputs[id(array)]), "float32")
            outputs.append(L.Identity(name=f"y{i}_{layer.name}")(y))
        model = keras.Model(list(inputs.values()), outputs)
        # predict() splits the arrays into batches of examples, so all arrays need the same number of examples.
        count = min(len(array) for array in arrays.values())
        arrays = {name: array[:count] for name, array in arrays.items()}
        wanted = model.predict(arrays, verbose=0)
        model.save(self.path("m.keras"))
        run("export", "--model", self.path("m.keras"), "--to", self.path("ours.keras"))
        again = keras.saving.load_model(self.path("ours.keras")).predict(arrays, verbose=0)
        np.savez(self.path("x.npz"), **arrays)
        run("predict", "--model", self.path("m.keras"), "--input", self.path("x.npz"), "--output", self.path("y.npz"))
        with np.load(self.path("y.npz")) as got:
            for output, value, other in zip(model.outputs, wanted, again):
                name = output._keras_history.operation.name
                np.testing.assert_array_equal(other, value, err_msg=name)
                self.assertEqual(got[name].shape, value.shape, name)
                np.testing.assert_allclose(got[name], value, rtol=0, atol=1e-5 * max(1, np.abs(value).max()), err_msg=name)

    def test_categories(self):
        self.check(categories())

    def test_sizes_of_images(self):
        self.check((image, layer) for image, layer in sizes() if image is IMAGES)
        self.check((image, layer) for image, layer in sizes() if image is WIDE)

    def test_random_changes_are_made_in_training_only(self):
        self.check(augmentations())

    def test_transforms_change_training_as_in_keras(self):
        images = np.concatenate([WIDE, WIDE[::-1, :, ::-1]])
        targets = RNG.standard_normal((len(images), 2)).astype(np.float32)
        np.savez(self.path("train.npz"), x=images, y=targets)
        for i, layer in enumerate(transforms()):
            with self.subTest(layer=layer.get_config()):
                model = keras.Sequential([keras.Input(WIDE.shape[1:]), layer, L.Flatten(), L.Dense(2, name="d")])
                model.save(self.path("m.keras"))
                train({"model": {"file": self.path("m.keras"), "weights": self.path("m.keras")},
                       "loss": "mean_squared_error", "optimizer": {"name": "sgd", "learning_rate": 1e-4},
                       "data": {"train": {"format": "npz", "file": self.path("train.npz"), "inputs": "x", "targets": "y"}},
                       "batch_size": len(images), "max_steps": 1, "model_dir": self.path(f"run{i}")})
                model.compile(keras.optimizers.SGD(1e-4), "mse", run_eagerly=True)
                before = model.layers[-1].kernel.numpy()
                model.train_on_batch(images, targets)
                wanted = model.layers[-1].kernel.numpy()
                got = tf.train.load_checkpoint(self.path(f"run{i}")).get_tensor("d/kernel")
                self.assertGreater(np.abs(wanted - before).max(), 0.01)
                np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-4)

    def test_what_is_not_supported_is_named(self):
        for x, layer, message in [
                (keras.Input((3,), dtype="int32"), L.IntegerLookup(vocabulary=[3], num_oov_indices=2), "num_oov_indices"),
                (keras.Input((3,), dtype="int32"), L.IntegerLookup(vocabulary=[3], invert=True), "invert"),
                (keras.Input((6, 6, 3)), L.RandomPerspective(0.1), "layer class RandomPerspective is not supported"),
                (keras.Input((3,), dtype="string"), L.StringLookup(vocabulary=["a"]), "string")]:
            with self.subTest(layer=type(layer).__name__):
                keras.Model(x, layer(x)).save(self.path("m.keras"))
                with self.assertRaisesRegex(AssertionError, message):
                    run("summary", "--model", self.path("m.keras"))
