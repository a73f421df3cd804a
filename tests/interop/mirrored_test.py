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


class Mirrored(unittest.TestCase):
    def test_each_step_has_the_loss_of_tensorflows_mirrored_strategy(self):
        with tempfile.TemporaryDirectory() as folder:
            # An epoch ends with a batch of one example, so two of the replicas have none.
            source, x, y = write_images(folder, "train", 401, seed=1)
            losses = {}
            for name in "mirrored", "central_storage":
                model_dir = f"{folder}/{name}"
                train(training_file(
                    [{"Dense": {"units": 16, "activation": "tanh"}}, {"Dense": {"units": 10}}],
                    optimizer={"name": "adam", "learning_rate": 0.001}, data={"train": source, "shuffle": False},
                    batch_size=BATCH, max_steps=STEPS, model_dir=model_dir, save_summary_steps=1,
                    save_checkpoints_steps=STEPS, strategy={"name": name, "devices": REPLICAS}))
                points = scalars(model_dir)["loss"]
                self.assertEqual([step for step, _ in points], list(range(1, STEPS + 1)))
                losses[name] = [loss for _, loss in points]
            start = tf.train.load_checkpoint(f"{folder}/mirrored/model.ckpt-0")
            weights = [start.get_tensor(f"{layer}/{part}")
                       for layer in ("dense", "dense_1") for part in ("kernel", "bias")]
            np.savez(f"{folder}/arrays.npz", x=x, y=y, **{f"w{i}": w for i, w in enumerate(weights)})
            peer = subprocess.run([sys.executable, PEER, f"{folder}/arrays.npz", str(REPLICAS), str(STEPS), str(BATCH)],
                                  stdout=subprocess.PIPE, check=True)
            theirs = json.loads(peer.stdout)
        np.testing.assert_allclose(losses["mirrored"], theirs, rtol=1e-4)
        self.assertEqual(losses["central_storage"], losses["mirrored"])
        self.assertLess(theirs[-2], theirs[0] / 2)


if __name__ == "__main__":
    unittest.main()
