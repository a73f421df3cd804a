"""Compares the order of the members of the C++ API's layers, optimizers, schedules and losses with the order of Keras'
arguments: C++ programs must list arguments in the order of declaration. run.sh runs it."""
import glob
import inspect
import os
import re
import unittest

import keras

API = os.path.join(os.path.dirname(__file__), "../../runtime/api")
MODULES = {"optimizers": [keras.optimizers, keras.optimizers.schedules], "losses": [keras.losses]}
# Classes that Keras does not have.
OWN = {"ClippedCrossentropy"}


def structs(path):
    """Returns the members of each struct of a generated header, in their order."""
    with open(path, encoding="utf-8") as header:
        text = header.read()
    return {name: re.findall(r"^  [\w:<>, ]+ (\w+) = ", body, re.M)
            for name, body in re.findall(r"struct (\w+) \{\n(.*?)\n\n  operator", text, re.S)}


class ArgumentOrderTest(unittest.TestCase):
    def compare(self, path, modules):
        compared = 0
        for name, members in structs(path).items():
            if name in OWN:
                continue
            keras_class = next(getattr(module, name) for module in modules if hasattr(module, name))
            arguments = list(inspect.signature(keras_class.__init__).parameters)
            expected = [argument for argument in arguments if argument in members]
            with self.subTest(name):
                self.assertEqual([member for member in members if member in expected], expected)
            compared += 1
        self.assertGreater(compared, 4, path)

    def test_layers(self):
        headers = glob.glob(os.path.join(API, "*_layers.h"))
        self.assertEqual(len(headers), 7)
        for path in headers:
            self.compare(path, [keras.layers])

    def test_optimizers_schedules_and_losses(self):
        for name, modules in MODULES.items():
            self.compare(os.path.join(API, name + ".h"), modules)


if __name__ == "__main__":
    unittest.main()
