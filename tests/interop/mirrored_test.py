"""Compares the strategies mirrored and central_storage with TensorFlow's MirroredStrategy: the loss
of each of 100 steps with the same initial variables and the same batches. run.sh runs it."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

from harness import scalars, train
from trainer_test import training_file, write_images

import numpy as np
import tensorflow as tf

PEER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tensorflow_mirrored.py")
STEPS, BATCH, REPLICAS = 100, 50, 3
# The models of tensorflow_mirrored.py and tensorflow_multi_worker.py, and their weights in Keras' order.
NORM = ("gamma", "beta", "moving_mean", "moving_variance")
MODELS = {
    "dense": ([{"Dense": {"units": 16, "activation": "tanh"}}, {"Dense": {"units": 10}}],
              ["dense/kernel", "dense/bias", "dense_1/kernel", "dense_1/bias"]),
    "synchronized": ([{"Dense": {"units": 16, "use_bias": False}}, {"BatchNormalization": {"synchronized": True}},
                      {"Activation": {"activation": "tanh"}}, {"Dense": {"units": 10}}],
                     ["dense/kernel", *(f"batch_normalization/{part}" for part in NORM),
                      "dense_1/kernel", "dense_1/bias"]),
}

LEARNS = {"dense": 0.5, "synchronized": 0.9}  # the last loss is below this fraction of the first one


def write_arrays(path, x, y, checkpoint, names):
    """Writes the features, the labels and the weights of a checkpoint for the peer."""
    start = tf.train.load_checkpoint(checkpoint)
    np.savez(path, x=x, y=y, **{f"w{i}": start.get_tensor(name) for i, name in enumerate(names)})


class Mirrored(unittest.TestCase):
    def losses(self, folder, model):
        """Returns the losses of both strategies and of TensorFlow's."""
        layers, names = MODELS[model]
        # An epoch ends with a batch of one example, so two of the replicas have none.
        source, x, y = write_images(folder, "train", 401, seed=1)
        losses = []
        for name in "mirrored", "central_storage":
            model_dir = f"{folder}/{name}"
            train(training_file(
                layers, optimizer={"name": "adam", "learning_rate": 0.001}, data={"train": source, "shuffle": False},
                batch_size=BATCH, max_steps=STEPS, model_dir=model_dir, save_summary_steps=1,
                save_checkpoints_steps=STEPS, strategy={"name": name, "devices": REPLICAS}))
            points = scalars(model_dir)["loss"]
            self.assertEqual([step for step, _ in points], list(range(1, STEPS + 1)))
            losses.append([loss for _, loss in points])
        write_arrays(f"{folder}/arrays.npz", x, y, f"{folder}/mirrored/model.ckpt-0", names)
        peer = subprocess.run(
            [sys.executable, PEER, f"{folder}/arrays.npz", str(REPLICAS), str(STEPS), str(BATCH), model],
            stdout=subprocess.PIPE, check=True)
        return *losses, json.loads(peer.stdout)

    def test_each_step_has_the_loss_of_tensorflows_mirrored_strategy(self):
        for model in MODELS:
            with self.subTest(model), tempfile.TemporaryDirectory() as folder:
                mirrored, central_storage, theirs = self.losses(folder, model)
                np.testing.assert_allclose(mirrored, theirs, rtol=1e-4)
                self.assertEqual(central_storage, mirrored)
                self.assertLess(theirs[-2], theirs[0] * LEARNS[model])


if __name__ == "__main__":
    unittest.main()
