"""Compares images with those that Pillow, tf.image and keras.utils.image_dataset_from_directory read.
run.sh runs it."""
import io
import os
import tempfile
import unittest

from harness import as_array, tool, train

import keras
import numpy as np
import tensorflow as tf
from PIL import Image


def encoded(image, form, **options):
    file = io.BytesIO()
    image.save(file, form, **options)
    return file.getvalue()


class Images(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.rng = np.random.default_rng(3)

    def picture(self, width, height, mode="RGB"):
        """Returns an image of smooth colours with some noise."""
        bands = []
        for _ in mode if mode != "L" else "L":
            coarse = Image.fromarray(self.rng.integers(0, 256, (5, 6), dtype=np.uint8))
            smooth = np.asarray(coarse.resize((width, height), Image.Resampling.BICUBIC), np.int16)
            noise = self.rng.integers(-8, 9, smooth.shape, dtype=np.int16)
            bands.append(Image.fromarray(np.clip(smooth + noise, 0, 255).astype(np.uint8)))
        return Image.merge(mode, bands) if len(bands) > 1 else bands[0]

    def write(self, name, content):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content)

    def read(self, **options):
        ours = tool("read-images", {"folder": self.folder, **options})
        return as_array(ours["features"]), as_array(ours["labels"])

    def decoded(self, content, channels):
        """Returns the pixels of one image, without resizing it."""
        self.write("c/image", content)
        width, height = Image.open(io.BytesIO(content)).size
        return self.read(height=height, width=width, channels=channels)[0][0]

    def jpegs(self):
        for quality in (30, 75, 100):
            for subsampling in (0, 1, 2):
                for progressive in (False, True):
                    options = {"quality": quality, "subsampling": subsampling, "progressive": progressive}
                    yield f"RGB {options}", encoded(self.picture(61, 43), "JPEG", **options)
        yield "L", encoded(self.picture(40, 30, "L"), "JPEG")
        yield "CMYK", encoded(self.picture(40, 30, "CMYK"), "JPEG")
        yield "CMYK progressive", encoded(self.picture(40, 30, "CMYK"), "JPEG", progressive=True)

    def test_jpeg_is_within_1_of_pillow(self):
        for name, content in self.jpegs():
            with self.subTest(name):
                expected = np.asarray(Image.open(io.BytesIO(content)).convert("RGB"), np.float32)
                np.testing.assert_allclose(self.decoded(content, 3), expected, atol=1, rtol=0)
                rgba = self.decoded(content, 4)
                np.testing.assert_allclose(rgba[..., :3], expected, atol=1, rtol=0)
                self.assertTrue((rgba[..., 3] == 255).all())

    def test_grey_jpeg_is_within_1_of_tensorflow(self):
        for name, content in self.jpegs():
            if "CMYK" in name:
                continue
            with self.subTest(name):
                expected = tf.io.decode_jpeg(content, channels=1, dct_method="INTEGER_ACCURATE")
                np.testing.assert_allclose(self.decoded(content, 1), expected, atol=1, rtol=0)

    def pngs(self):
        rgb, grey = self.picture(37, 29), self.picture(37, 29, "L")
        rgba = rgb.copy()
        rgba.putalpha(grey)
        grey_alpha = Image.merge("LA", (grey, self.picture(37, 29, "L")))
        yield "RGB", encoded(rgb, "PNG")
        yield "RGBA", encoded(rgba, "PNG")
        yield "L", encoded(grey, "PNG")
        yield "LA", encoded(grey_alpha, "PNG")
        yield "palette", encoded(rgb.quantize(200), "PNG")
        yield "4 bits", encoded(rgb.quantize(13), "PNG", bits=4)
        yield "1 bit", encoded(grey.convert("1"), "PNG")
        yield "transparent colour", encoded(rgb.quantize(50), "PNG", transparency=7)

    def test_png_equals_pillow_and_tensorflow(self):
        for name, content in self.pngs():
            with self.subTest(name):
                opened = Image.open(io.BytesIO(content))
                for channels, mode in ((3, "RGB"), (4, "RGBA")):
                    ours = self.decoded(content, channels)
                    np.testing.assert_array_equal(ours, np.asarray(opened.convert(mode)), mode)
                    # With fewer than 8 bits, TensorFlow's alpha channel is not 255.
                    theirs = tf.io.decode_png(content, channels=channels)
                    np.testing.assert_array_equal(ours[..., :3], theirs[..., :3])
                np.testing.assert_allclose(self.decoded(content, 1), tf.io.decode_png(content, channels=1),
                                           atol=1, rtol=0)

    def test_png_of_16_bits_equals_tensorflow(self):
        words = self.rng.integers(0, 65536, (20, 30), dtype=np.uint16)
        content = encoded(Image.fromarray(words), "PNG")
        np.testing.assert_array_equal(self.decoded(content, 1), tf.io.decode_png(content, channels=1))
        colours = tf.io.encode_png(self.rng.integers(0, 65536, (20, 30, 3), dtype=np.uint16)).numpy()
        np.testing.assert_array_equal(self.decoded(colours, 3), tf.io.decode_png(colours, channels=3))

    def write_folder(self, forms):
        """Writes images of several sizes to one folder per class. The names sort in unusual ways."""
        sizes = [(50, 40), (33, 70), (64, 48), (10, 10), (90, 31)]
        names = ["b/10", "b/2", "b/sub/1", "b/sub-2/1", "A/z", "A/ü", "c d/_", "c d/x.y", "c d/deep/er/0"]
        for i, name in enumerate(names):
            form = forms[i % len(forms)]
            picture = self.picture(*sizes[i % len(sizes)])
            self.write(f"{name}.{form.lower()}", encoded(picture, form))
        self.write("b/.DS_Store", b"no image")
        return len(names)

    def keras_dataset(self, height, width, **options):
        data = keras.utils.image_dataset_from_directory(
            self.folder, image_size=(height, width), batch_size=None, shuffle=False, verbose=False, **options)
        images, labels = zip(*data)
        return np.stack(images), np.stack(labels), data.class_names

    def test_folders_equal_those_of_keras(self):
        count = self.write_folder(["PNG"])
        for ours, theirs in (
                ({"channels": 3}, {}),
                ({"channels": 1}, {"color_mode": "grayscale"}),
                ({"channels": 4}, {"color_mode": "rgba"}),
                ({"channels": 3, "nearest": True, "threads": 3}, {"interpolation": "nearest"}),
                ({"channels": 3, "crop": True}, {"crop_to_aspect_ratio": True}),
                ({"channels": 3, "classes": ["c d", "A"]}, {"class_names": ["c d", "A"]})):
            for height, width in ((24, 36), (64, 48), (100, 70)):
                with self.subTest(ours=ours, height=height, width=width):
                    images, labels = self.read(height=height, width=width, **ours)
                    expected, expected_labels, _ = self.keras_dataset(height, width, **theirs)
                    self.assertIn(len(images), (count, 5))
                    np.testing.assert_array_equal(labels, expected_labels)
                    # TensorFlow does not round luminance.
                    atol = 1.001 if ours["channels"] == 1 else 1e-3
                    np.testing.assert_allclose(images, expected, atol=atol, rtol=0)

    def test_jpeg_resized_is_within_1_of_tf_image(self):
        self.write_folder(["JPEG"])
        files = keras.utils.image_dataset_from_directory(
            self.folder, batch_size=None, shuffle=False, verbose=False).file_paths
        images, _ = self.read(height=30, width=44, channels=3)
        for path, ours in zip(files, images, strict=True):
            # Keras decodes with INTEGER_FAST, which is less accurate.
            decoded = tf.io.decode_jpeg(tf.io.read_file(path), channels=3, dct_method="INTEGER_ACCURATE")
            np.testing.assert_allclose(ours, tf.image.resize(decoded, (30, 44)), atol=1, rtol=0)

    def test_images_in_records(self):
        path = os.path.join(self.folder, "images.tfrecord")
        contents = [encoded(self.picture(70, 50), form) for form in ("JPEG", "PNG", "JPEG")]
        with tf.io.TFRecordWriter(path) as writer:
            for content in contents:
                feature = tf.train.Feature(bytes_list=tf.train.BytesList(value=[content]))
                features = tf.train.Features(feature={"image": feature})
                writer.write(tf.train.Example(features=features).SerializeToString())
        ours = tool("read-records", {"files": [path], "features": {
            "image": {"dtype": "float32", "shape": [20, 30, 3], "image": {"height": 20, "width": 30, "channels": 3}}}})
        for i, record in enumerate(tf.data.TFRecordDataset([path])):
            parsed = tf.io.parse_single_example(record, {"image": tf.io.FixedLenFeature([], tf.string)})
            if contents[i][:2] == b"\xff\xd8":
                decoded = tf.io.decode_jpeg(parsed["image"], channels=3, dct_method="INTEGER_ACCURATE")
            else:
                decoded = tf.io.decode_png(parsed["image"], channels=3)
            np.testing.assert_allclose(as_array(ours["image"])[i], tf.image.resize(decoded, (20, 30)), atol=1, rtol=0)

    def test_training_equals_training_on_the_same_arrays(self):
        count = self.write_folder(["PNG"])
        images, labels = self.read(height=6, width=5, channels=3)
        self.assertEqual(len(images), count)
        arrays = os.path.join(self.folder, "train.npz")
        np.savez(arrays, x=images, y=labels)
        keys = {"model": {"layers": [{"InputLayer": {"batch_shape": [None, 6, 5, 3]}}, "Flatten",
                                     {"Dense": {"units": 3}}]},
                "loss": {"name": "sparse_categorical_crossentropy", "from_logits": True},
                "batch_size": 2, "max_steps": 12, "seed": 4}
        sources = {
            "arrays": {"format": "npz", "file": arrays, "scale": "1/255"},
            "images": {"format": "images", "folder": self.folder, "height": 6, "width": 5, "scale": "1/255"},
        }
        trained = {}
        with tempfile.TemporaryDirectory() as folder:
            for name, source in sources.items():
                model_dir = os.path.join(folder, name)
                train({**keys, "data": {"train": source}, "model_dir": model_dir})
                reader = tf.train.load_checkpoint(model_dir)
                trained[name] = [reader.get_tensor(v) for v in sorted(reader.get_variable_to_shape_map())
                                 if v.startswith("dense/")]
        self.assertEqual(len(trained["arrays"]), 2)
        for a, b in zip(trained["arrays"], trained["images"]):
            np.testing.assert_array_equal(a, b)


if __name__ == "__main__":
    unittest.main()
