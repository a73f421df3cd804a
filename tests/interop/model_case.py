"""Defines a model with weights and data, for which Keras and the trainer each compute the outputs and a
step of plain SGD."""
import json
import subprocess

from harness import RUN_SECONDS, TRAINER, in_type, listed, with_weights

import numpy as np
import keras
import tensorflow as tf

from interop_test import variables

EXAMPLES = 4
RATE = 0.1
FORMS = ("json", "keras")  # the forms in which the trainer gets a model: JSON with separate weights, or one file


class Refused(Exception):
    """Raised if this project does not support the model."""


def run(*arguments):
    done = subprocess.run([TRAINER, *arguments], capture_output=True, text=True, timeout=RUN_SECONDS)
    if done.returncode != 0:
        raise Refused(f"exit code {done.returncode}: {done.stderr.strip()}")


def keras_loss(given):
    """Returns Keras' loss for a loss in a training file."""
    arguments = dict(given) if isinstance(given, dict) else {"name": given}
    name = "".join(word.title() for word in arguments.pop("name").split("_"))
    return getattr(keras.losses, name)(**arguments)


class Case:
    """A subclass sets the model (in float32, see build), its weights, the arrays of its inputs by name, the outputs
    for these inputs, and the labels. It may replace the losses: one for each output, as in a training file."""
    model = weights = arrays = outputs = labels = losses = None

    def build(self):
        """Returns the model in the type of Keras' floatx, with initial weights."""
        raise NotImplementedError

    def to_json(self):
        return self.model.to_json()

    def examples(self, length=None):
        """Returns one array of examples per input. `length` replaces lengths that the model does not state."""
        arrays = {}
        for tensor in self.model.inputs:
            shape = [EXAMPLES] + [dim or length for dim in tensor.shape[1:]]
            count = self.count_of_ids(tensor)
            if count is not None:
                arrays[tensor.name] = self.rng.integers(0, count, shape).astype(tensor.dtype)
            elif tensor.dtype == "uint8":
                arrays[tensor.name] = self.rng.integers(0, 256, shape, dtype=np.uint8)
            elif tensor.dtype in ("int32", "int64"):
                arrays[tensor.name] = self.rng.integers(-9, 10, shape).astype(tensor.dtype)
            else:
                dtype = "float64" if tensor.dtype == "float64" else "float32"
                arrays[tensor.name] = self.rng.standard_normal(shape).astype(dtype)
        return arrays

    def count_of_ids(self, tensor):
        """Returns the number of ids of an input of ids, or None for other inputs."""
        return 7 if tensor.name.startswith("ids") else None

    def keras(self, floatx):
        """Returns the outputs and the variables after a step, computed in this type."""
        def compute():
            model = with_weights(self.build(), self.weights)
            inputs = [self.arrays[x.name].astype(x.dtype) for x in model.inputs]
            outputs = [np.asarray(y, np.float64) for y in listed(model(inputs, training=False))]
            if not model.trainable_weights:
                return outputs, {}
            losses = [keras_loss(loss) for loss in self.losses or ["mean_squared_error"] * len(outputs)]
            model.compile(optimizer=keras.optimizers.SGD(RATE), loss=losses, run_eagerly=True, auto_scale_loss=False)
            labels = [y.astype(floatx) if y.dtype == np.float32 else y for y in self.labels]
            model.train_on_batch(inputs, labels)
            return outputs, {k: np.asarray(v, np.float64) for k, v in variables(model).items()}
        return in_type(floatx, compute)

    def write(self, folder):
        """Writes the model in each form, and its inputs."""
        self.model.save(f"{folder}/model.keras")
        self.model.save_weights(f"{folder}/model.weights.h5")
        with open(f"{folder}/model.json", "w") as file:
            file.write(self.to_json())
        np.savez(f"{folder}/in.npz", **self.arrays)

    def files(self, folder, form):
        """Returns the files of the model and of its weights."""
        if form == "keras":
            return f"{folder}/model.keras", f"{folder}/model.keras"
        return f"{folder}/model.json", f"{folder}/model.weights.h5"

    def predict(self, folder, form="keras"):
        model, weights = self.files(folder, form)
        run("predict", "--model", model, "--weights", weights, "--input", f"{folder}/in.npz",
            "--output", f"{folder}/out.npz", "--batch-size", "3", "--threads", "1")
        with np.load(f"{folder}/out.npz") as arrays:
            return [arrays[name] for name in arrays.files]

    def step(self, folder, form="keras"):
        """Returns the variables after a step of the trainer."""
        model, weights = self.files(folder, form)
        losses = self.losses or ["mean_squared_error"] * len(self.outputs)
        single, names = len(self.outputs) == 1, self.output_names()
        keys = {"model": {"keras_json" if form == "json" else "file": model, "weights": weights},
                "data": {"train": {"format": "npz", "file": f"{folder}/train.npz"}},
                "optimizer": {"name": "sgd", "learning_rate": RATE}, "batch_size": EXAMPLES, "max_steps": 1,
                "model_dir": f"{folder}/run-{form}"}
        keys |= {"loss": losses[0]} if single else {"outputs": {n: {"loss": loss} for n, loss in zip(names, losses)}}
        arrays = dict(self.arrays)
        arrays |= dict(zip(["y"] if single else names, self.labels))
        if len(self.model.inputs) == 1:
            arrays["x"] = arrays.pop(self.model.inputs[0].name)
        np.savez(f"{folder}/train.npz", **arrays)
        with open(f"{folder}/train.yaml", "w") as file:
            json.dump(keys, file)
        run("--config", f"{folder}/train.yaml")
        reader = tf.train.load_checkpoint(keys["model_dir"])
        return {name: reader.get_tensor(name) for name in variables(self.model)}

    def output_names(self):
        counts, names = {}, []
        for tensor in listed(self.model.outputs):
            base = tensor._keras_history.operation.name
            number = counts[base] = counts.get(base, -1) + 1
            names.append(base if number == 0 else f"{base}_{number}")
        return names
