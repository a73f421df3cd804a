"""Compares the strategy multi_worker_mirrored with TensorFlow's MultiWorkerMirroredStrategy: the loss of each of 100
steps that two processes take with the same initial variables and the same batches. run.sh runs it."""
import json
import os
import socket
import subprocess
import sys
import tempfile
import unittest

from harness import RUN_SECONDS, TRAINER, scalars
from mirrored_test import LEARNS, MODELS, write_arrays
from trainer_test import training_file, write_images

import numpy as np

PEER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "tensorflow_multi_worker.py")
STEPS, BATCH = 100, 50
TASKS = ("chief", 0), ("worker", 0)


def run_group(command):
    """Runs a command as the two tasks of a cluster. Returns the output of the chief."""
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in TASKS]
    addresses = [f"127.0.0.1:{listener.getsockname()[1]}" for listener in listeners]
    for listener in listeners:
        listener.close()
    cluster = {"chief": addresses[:1], "worker": addresses[1:]}
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TFJOB_")}
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, env={
        **environment, "TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": kind, "index": index}})})
        for kind, index in TASKS]
    try:
        outputs = [process.communicate(timeout=RUN_SECONDS)[0] for process in started]
    finally:
        for process in started:
            process.kill()
            process.wait()
    for process, output in zip(started, outputs):
        if process.returncode != 0:
            raise AssertionError(f"{command} ended with {process.returncode}: {output.decode()}")
    return outputs[0]


class MultiWorkerMirrored(unittest.TestCase):
    def losses(self, folder, model):
        """Returns the losses of both implementations."""
        layers, names = MODELS[model]
        # An epoch ends with a batch of one example, so one of the workers has none.
        source, x, y = write_images(folder, "train", 401, seed=1)
        model_dir, training = f"{folder}/model", f"{folder}/training.yaml"
        with open(training, "w") as file:
            json.dump(training_file(
                layers, optimizer={"name": "adam", "learning_rate": 0.001}, data={"train": source, "shuffle": False},
                global_batch_size=BATCH, max_steps=STEPS, model_dir=model_dir, save_summary_steps=1,
                save_checkpoints_steps=STEPS, strategy={"name": "multi_worker_mirrored"}), file)
        run_group([TRAINER, f"--config={training}"])
        points = scalars(model_dir)["loss"]
        self.assertEqual([step for step, _ in points], list(range(1, STEPS + 1)))
        write_arrays(f"{folder}/arrays.npz", x, y, f"{model_dir}/model.ckpt-0", names)
        theirs = run_group([sys.executable, PEER, f"{folder}/arrays.npz", str(STEPS), str(BATCH), model])
        return [loss for _, loss in points], json.loads(theirs)

    def test_each_step_has_the_loss_of_tensorflows_multi_worker_mirrored_strategy(self):
        for model in MODELS:
            with self.subTest(model), tempfile.TemporaryDirectory() as folder:
                ours, theirs = self.losses(folder, model)
                np.testing.assert_allclose(ours, theirs, rtol=1e-4)
                self.assertLess(theirs[-2], theirs[0] * LEARNS[model])


if __name__ == "__main__":
    unittest.main()
