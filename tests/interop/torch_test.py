"""Exchanges weights with PyTorch through safetensors, bit for bit. run.sh runs it only if TFJOB_DEEP is set, in a
Python environment with the packages that torch.txt lists."""
import json
import os
import subprocess
import tempfile
import unittest

import numpy as np
import torch
from safetensors.torch import load_file, save_file

TRAINER = os.environ["INTEROP_TRAINER"]
RUN_SECONDS = 600  # a program may take minutes on a busy machine
MODELS = os.path.join(os.path.dirname(__file__), "../../deploy/examples/models")


def run(*arguments):
    done = subprocess.run([TRAINER, *arguments], capture_output=True, text=True, timeout=RUN_SECONDS)
    if done.returncode != 0:
        raise AssertionError(f"tfjob-trainer {' '.join(arguments)}: {done.returncode}\n{done.stderr}{done.stdout}")


def examples():
    """Returns the models of the small examples as JSON, by name."""
    found = {}
    for name in sorted(os.listdir(MODELS)):
        if name.endswith(".yaml"):
            with open(os.path.join(MODELS, name)) as file:
                text = file.read()
            if "  model.json: |\n" in text:
                lines = text.split("  model.json: |\n")[1].split("\n---\n")[0].splitlines()
                found[name] = json.loads("\n".join(lines))
    return found


def special(shape, generator):
    """Returns random bits as float32, including negative zeros, subnormal numbers, infinities and NaNs."""
    bits = torch.randint(-2**31, 2**31, shape, generator=generator, dtype=torch.int64).to(torch.int32)
    return bits.view(torch.float32)


class Torch(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def trained(self, model):
        """Writes a model as JSON. Returns its variables, as the trainer writes them after a step on random data."""
        with open(self.path("m.json"), "w") as file:
            json.dump(model, file)
        ranges = {name: [0, 1] for name, _, _ in model["config"]["input_layers"]}
        with open(self.path("training.json"), "w") as file:
            json.dump({"model": {"keras_json": self.path("m.json")}, "loss": "mean_squared_error",
                       "data": {"train": {"format": "synthetic", "ranges": ranges}}, "batch_size": 2, "max_steps": 1,
                       "model_dir": tempfile.mkdtemp(dir=self.folder)}, file)
        run("--config", self.path("training.json"))
        run("export", "--model", self.path("training.json"), "--to", self.path("trained.safetensors"))
        return load_file(self.path("trained.safetensors"))

    def assert_equal(self, ours, theirs):
        self.assertEqual(sorted(ours), sorted(theirs))
        for name, tensor in theirs.items():
            self.assertEqual((ours[name].dtype, ours[name].shape), (tensor.dtype, tensor.shape), name)
            self.assertTrue(torch.equal(ours[name].view(torch.int32), tensor.view(torch.int32)), name)

    def test_the_trainer_reads_and_writes_the_bits_of_pytorch(self):
        generator = torch.Generator().manual_seed(3)
        models = examples()
        self.assertEqual(len(models), 7)
        for name, model in models.items():
            with self.subTest(model=name):
                weights = {key: special(value.shape, generator) for key, value in self.trained(model).items()}
                save_file(weights, self.path("theirs.safetensors"))
                run("export", "--model", self.path("m.json"), "--weights", self.path("theirs.safetensors"), "--to",
                    self.path("ours.safetensors"))
                self.assert_equal(load_file(self.path("ours.safetensors")), weights)

    def test_a_linear_layer_of_pytorch_predicts_as_the_trainer(self):
        """The kernel of the trainer's Dense is the transposed weight of PyTorch's Linear."""
        torch.manual_seed(4)
        linear = torch.nn.Linear(3, 2)
        with open(self.path("m.json"), "w") as file:
            json.dump({"class_name": "Sequential", "config": {"name": "m", "layers": [
                {"class_name": "InputLayer", "config": {"batch_shape": [None, 3], "name": "x"}},
                {"class_name": "Dense", "config": {"units": 2, "name": "d"}}]}}, file)
        save_file({"d/kernel": linear.weight.detach().T.contiguous(), "d/bias": linear.bias.detach()},
                  self.path("w.safetensors"))
        x = torch.randn(5, 3)
        np.save(self.path("x.npy"), x.numpy())
        run("predict", "--model", self.path("m.json"), "--weights", self.path("w.safetensors"), "--input",
            self.path("x.npy"), "--output", self.path("y.npy"))
        exact = linear.double()(x.double()).detach().numpy()
        self.assertLessEqual(np.abs(np.load(self.path("y.npy")) - exact).max(), 1e-5 * np.abs(exact).max())
