"""Reads checkpoints in which TensorFlow has partitioned variables into slices, along each axis and
over several data files. run.sh runs it."""
import os
import tempfile
import unittest

from harness import as_array, tool, train
from trainer_test import training_file, write_images

import numpy as np
import tensorflow as tf

v1 = tf.compat.v1


def partitioned(parts, axis=0):
    return v1.fixed_size_partitioner(parts, axis=axis)


class Partitioned(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def check(self, prefix, names):
        read, reader = tool("read-checkpoint", {"prefix": prefix}), tf.train.load_checkpoint(prefix)
        self.assertEqual(sorted(read), sorted(names))
        for name in names:
            wanted = reader.get_tensor(name)
            self.assertNotIn("error", read[name], name)
            got = as_array(read[name])
            self.assertEqual((got.dtype, got.shape), (wanted.dtype, wanted.shape), name)
            self.assertEqual(got.tobytes(), wanted.tobytes(), name)

    def test_we_read_slices_along_every_axis(self):
        with tf.Graph().as_default(), v1.Session() as session:
            normal = v1.random_normal_initializer(seed=3)
            v1.get_variable("rows", [1000, 7], initializer=normal, partitioner=partitioned(3))
            v1.get_variable("columns", [9, 70000], initializer=normal, partitioner=partitioned(4, axis=1))
            v1.get_variable("cube", [5, 6, 7], tf.float64, initializer=v1.ones_initializer(),
                            partitioner=partitioned(2, axis=1))
            v1.get_variable("ids", [300], tf.int64, initializer=tf.constant_initializer(7),
                            partitioner=partitioned(2))
            v1.get_variable("whole", [4, 4], initializer=normal)
            session.run(v1.global_variables_initializer())
            prefix = v1.train.Saver().save(session, self.path("model.ckpt"), write_meta_graph=False)
        self.check(prefix, ["rows", "columns", "cube", "ids", "whole"])

    def test_we_read_slices_in_several_data_files(self):
        """SaveV2 saves the slices into three data files, as three processes would, and
        MergeV2Checkpoints merges the three checkpoints."""
        value = np.random.default_rng(4).standard_normal((30, 4)).astype(np.float32)
        specs = ["30 4 0,12:0,4", "30 4 12,18:0,1", "30 4 12,18:1,3"]
        slices = [value[:12], value[12:, :1], value[12:, 1:]]
        prefixes = []
        for i, (spec, part) in enumerate(zip(specs, slices)):
            prefixes.append(self.path(f"part-{i}"))
            tf.raw_ops.SaveV2(prefix=prefixes[-1], tensor_names=["table"], shape_and_slices=[spec],
                              tensors=[tf.constant(part)])
        tf.raw_ops.MergeV2Checkpoints(checkpoint_prefixes=prefixes, destination_prefix=self.path("merged"))
        self.assertTrue(os.path.exists(self.path("merged.data-00002-of-00003")))
        self.check(self.path("merged"), ["table"])
        read = tool("read-checkpoint", {"prefix": self.path("merged")})
        np.testing.assert_array_equal(as_array(read["table"]), value)

    def test_training_continues_from_partitioned_variables_and_slots(self):
        """TensorFlow 1 trains for three steps. We take the fourth step."""
        source, features, labels = write_images(self.folder, "train", 64, seed=3)
        model_dir = self.path("model")
        with tf.Graph().as_default(), v1.Session() as session:
            v1.set_random_seed(5)
            step = v1.train.get_or_create_global_step()
            x = tf.constant(features.reshape(len(features), -1))
            for name, units, activation, axis in ("dense", 16, tf.tanh, 0), ("dense_1", 10, tf.identity, 1):
                kernel = v1.get_variable(f"{name}/kernel", [x.shape[-1], units], partitioner=partitioned(3, axis))
                bias = v1.get_variable(f"{name}/bias", [units], initializer=v1.zeros_initializer())
                x = activation(tf.matmul(x, kernel) + bias)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=x))
            update = v1.train.AdamOptimizer(0.001).minimize(loss, global_step=step)
            session.run(v1.global_variables_initializer())
            for _ in range(3):
                session.run(update)
            os.makedirs(model_dir)
            saver = v1.train.Saver()
            saver.save(session, f"{model_dir}/model.ckpt", global_step=3)
            session.run(update)
            wanted = tf.train.load_checkpoint(saver.save(session, self.path("four")))
        keys = training_file(
            [{"Dense": {"units": 16, "activation": "tanh"}}, {"Dense": {"units": 10}}],
            optimizer={"name": "adam", "learning_rate": 0.001, "epsilon": 1e-8},
            data={"train": source}, batch_size=64, max_steps=4, model_dir=model_dir)
        log = train(keys)
        self.assertRegex(log, r"restored a checkpoint .*step=3\b")
        ours = tf.train.load_checkpoint(model_dir)
        self.assertEqual(ours.get_tensor("global_step"), 4)
        for name in ("dense/kernel", "dense/kernel/Adam", "dense/kernel/Adam_1", "dense_1/kernel", "dense_1/bias"):
            np.testing.assert_allclose(ours.get_tensor(name), wanted.get_tensor(name), rtol=0, atol=2e-6, err_msg=name)
        # Use the same variables as the initial weights of a new run.
        train({**keys, "model": {**keys["model"], "weights": self.path("four")},
               "optimizer": {"name": "sgd", "learning_rate": 0.0}, "max_steps": 1, "model_dir": self.path("new")})
        new = tf.train.load_checkpoint(self.path("new"))
        for name in ("dense/kernel", "dense_1/kernel", "dense_1/bias"):
            np.testing.assert_array_equal(new.get_tensor(name), wanted.get_tensor(name), err_msg=name)


if __name__ == "__main__":
    unittest.main()
