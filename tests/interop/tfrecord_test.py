"""Reads TFRecord files that TensorFlow has written, and compares the values with those that tf.data
and tf.io read. TensorFlow also reads our files. run.sh runs it."""
import gzip
import os
import tempfile
import unittest

from harness import as_array, tool, train

import numpy as np
import tensorflow as tf


def bytes_feature(values):
    return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))


def float_feature(values):
    return tf.train.Feature(float_list=tf.train.FloatList(value=values))


def int64_feature(values):
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


def example(features):
    return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()


class TfRecord(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.rng = np.random.default_rng(5)

    def write(self, name, compression, records):
        path = os.path.join(self.folder, name)
        with tf.io.TFRecordWriter(path, compression) as writer:
            for record in records:
                writer.write(record)
        return path

    def records(self, count):
        """Returns examples with all kinds of features. Some examples lack a feature."""
        made = []
        for i in range(count):
            features = {
                "image": bytes_feature([self.rng.integers(0, 256, 12, dtype=np.uint8).tobytes()]),
                "doubles": bytes_feature([self.rng.standard_normal(3).tobytes()]),
                "floats": float_feature(self.rng.standard_normal(5).astype(np.float32)),
                "extremes": int64_feature([-2**63, 2**63 - 1, i]),
                "tokens": int64_feature(self.rng.integers(-500, 500, self.rng.integers(0, 7))),
                "unused": bytes_feature([b"a", b"b"]),
            }
            if i % 3 == 0:
                features["sometimes"] = float_feature([i])
            made.append(example(features))
        return made

    FEATURES = {
        "image": {"dtype": "uint8", "shape": [3, 4], "raw": True},
        "doubles": {"dtype": "float64", "shape": [3], "raw": True},
        "floats": {"dtype": "float32", "shape": [5]},
        "extremes": {"dtype": "int64", "shape": [3]},
        "tokens": {"dtype": "int64", "shape": [8], "variable": True, "fill": -1},
        "sometimes": {"dtype": "float32", "shape": [], "fill": 0.5},
    }

    def expected(self, paths, compression):
        parsed = {
            "image": tf.io.FixedLenFeature([], tf.string),
            "doubles": tf.io.FixedLenFeature([], tf.string),
            "floats": tf.io.FixedLenFeature([5], tf.float32),
            "extremes": tf.io.FixedLenFeature([3], tf.int64),
            "tokens": tf.io.VarLenFeature(tf.int64),
            "sometimes": tf.io.FixedLenFeature([], tf.float32, default_value=0.5),
        }
        data = tf.data.TFRecordDataset(paths, compression_type=compression)
        batch = tf.io.parse_example(list(data), parsed)
        tokens = tf.sparse.to_dense(batch["tokens"], default_value=-1).numpy()
        batch["tokens"] = np.pad(tokens, ((0, 0), (0, 8 - tokens.shape[1])), constant_values=-1)
        batch["image"] = tf.reshape(tf.io.decode_raw(batch["image"], tf.uint8), [-1, 3, 4])
        batch["doubles"] = tf.io.decode_raw(batch["doubles"], tf.float64)
        return batch

    def test_values_equal_those_of_tensorflow(self):
        for compression in ("", "GZIP", "ZLIB"):
            with self.subTest(compression):
                paths = [self.write(f"{compression}-{i}.tfrecord", compression, self.records(count))
                         for i, count in enumerate((40, 1, 23))]
                ours = tool("read-records", {"files": [os.path.join(self.folder, f"{compression}-*.tfrecord")],
                                             "features": self.FEATURES})
                for name, value in self.expected(paths, compression).items():
                    np.testing.assert_array_equal(as_array(ours[name]), np.asarray(value), name)

    def sequences(self, count):
        """Returns sequence examples with all kinds of features, of different lengths."""
        made = []
        for i in range(count):
            steps = int(self.rng.integers(0, 6))
            lists = {
                "floats": [float_feature(self.rng.standard_normal(2)) for _ in range(steps)],
                "tokens": [int64_feature([self.rng.integers(-2**63, 2**63 - 1)]) for _ in range(steps)],
                "frames": [bytes_feature([self.rng.integers(0, 256, 3, dtype=np.uint8).tobytes()])
                           for _ in range(steps)],
                "unused": [int64_feature([1, 2, 3])],
            }
            made.append(tf.train.SequenceExample(
                context=tf.train.Features(feature={"label": int64_feature([i])}),
                feature_lists=tf.train.FeatureLists(feature_list={
                    name: tf.train.FeatureList(feature=of_steps) for name, of_steps in lists.items()}),
            ).SerializeToString())
        return made

    def test_sequences_equal_those_of_tensorflow(self):
        for compression in ("", "GZIP", "ZLIB"):
            with self.subTest(compression):
                path = self.write(f"sequences-{compression}", compression, self.sequences(50))
                self.check_sequences(path, compression)

    def check_sequences(self, path, compression):
        ours = tool("read-records", {"files": [path], "features": {
            "label": {"dtype": "int64", "shape": []},
            "floats": {"dtype": "float32", "shape": [6, 2], "variable": True, "sequence": True, "fill": -1},
            "tokens": {"dtype": "int64", "shape": [6], "variable": True, "sequence": True},
            "frames": {"dtype": "uint8", "shape": [6, 3], "raw": True, "variable": True, "sequence": True},
        }})
        for i, record in enumerate(tf.data.TFRecordDataset([path], compression_type=compression)):
            context, lists = tf.io.parse_single_sequence_example(
                record, {"label": tf.io.FixedLenFeature([], tf.int64)},
                {"floats": tf.io.FixedLenSequenceFeature([2], tf.float32),
                 "tokens": tf.io.FixedLenSequenceFeature([], tf.int64),
                 "frames": tf.io.FixedLenSequenceFeature([], tf.string)})
            missing = 6 - len(lists["tokens"])
            frames = [np.frombuffer(frame, np.uint8) for frame in lists["frames"].numpy()]
            expected = {
                "label": context["label"].numpy(),
                "floats": np.pad(lists["floats"].numpy(), ((0, missing), (0, 0)), constant_values=-1),
                "tokens": np.pad(lists["tokens"].numpy(), (0, missing)),
                "frames": np.pad(np.reshape(frames, (-1, 3)), ((0, missing), (0, 0))),
            }
            for name, value in expected.items():
                np.testing.assert_array_equal(as_array(ours[name])[i], value, f"{name} of {i}")

    def test_tensorflow_reads_our_records(self):
        records = [self.rng.integers(0, 256, size, dtype=np.uint8).tobytes() for size in (0, 1, 300, 70000)]
        records += self.records(5)
        plain, packed = os.path.join(self.folder, "plain"), os.path.join(self.folder, "packed")
        tool("write-records", {"file": plain, "records": [record.hex() for record in records]})
        self.assertEqual([record.numpy() for record in tf.data.TFRecordDataset(plain)], records)
        with open(plain, "rb") as ours, open(self.write("theirs", "", records), "rb") as theirs:
            content = ours.read()
            self.assertEqual(content, theirs.read())
        with gzip.open(packed, "wb") as file:
            file.write(content)
        self.assertEqual([record.numpy() for record in tf.data.TFRecordDataset(packed, "GZIP")], records)

    def test_training_equals_training_on_the_same_arrays(self):
        x = self.rng.standard_normal((90, 6)).astype(np.float32)
        y = self.rng.integers(0, 3, 90)
        w = self.rng.random(90).astype(np.float32)
        np.savez(os.path.join(self.folder, "train.npz"), x=x, y=y, w=w)
        records = [example({"x": float_feature(x[i]), "y": int64_feature([y[i]]), "w": float_feature([w[i]])})
                   for i in range(90)]
        path = self.write("train.tfrecord", "", records)
        keys = {"model": {"layers": [{"InputLayer": {"batch_shape": [None, 6]}}, {"Dense": {"units": 3}}]},
                "loss": {"name": "sparse_categorical_crossentropy", "from_logits": True},
                "batch_size": 8, "max_steps": 30, "seed": 3}
        sources = {
            "arrays": {"format": "npz", "file": os.path.join(self.folder, "train.npz"), "sample_weights": "w"},
            "records": {"format": "tfrecord", "files": [path], "sample_weights": "w",
                        "features": {"x": {"dtype": "float32", "shape": [6]}, "y": {"dtype": "int64", "shape": []},
                                     "w": {"dtype": "float32", "shape": []}}},
        }
        trained = {}
        for name, source in sources.items():
            model_dir = os.path.join(self.folder, name)
            train({**keys, "data": {"train": source}, "model_dir": model_dir})
            reader = tf.train.load_checkpoint(model_dir)
            trained[name] = [reader.get_tensor(v) for v in sorted(reader.get_variable_to_shape_map())
                             if v.startswith("dense/")]
        self.assertEqual(len(trained["arrays"]), 2)
        for a, b in zip(trained["arrays"], trained["records"]):
            np.testing.assert_array_equal(a, b)


if __name__ == "__main__":
    unittest.main()
