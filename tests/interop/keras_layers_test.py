"""Checks that the tables in docs/guides/coming-from-keras.md are current, and that random_models.py draws every layer in
them. run.sh runs it."""
import unittest

import harness  # noqa: F401  before Keras

import keras_layers
import random_models
import unsupported_arguments


class KerasLayers(unittest.TestCase):
    def test_the_page_is_current(self):
        for name, make in keras_layers.TABLES.items():
            with self.subTest(table=name):
                self.assertEqual(keras_layers.parts(name)[1], make(),
                                 "run tests/interop/keras_layers.py in the environment of tests/interop/run.sh")

    def test_every_argument_that_is_not_documented_is_tried(self):
        for name in sorted(set(keras_layers.supported()) - unsupported_arguments.PARTS):
            untried = set(unsupported_arguments.untried(name)) - set(keras_layers.arguments(name))
            self.assertEqual(untried, set(), f"{name}: add values to TRIED in unsupported_arguments.py")

    def test_keras_accepts_a_value_that_is_tried_for_each_argument(self):
        for name in sorted(set(keras_layers.supported()) - unsupported_arguments.PARTS):
            self.assertEqual(set(unsupported_arguments.unfit(name)) - unsupported_arguments.UNFIT.get(name, set()), set(),
                             f"{name}: add values to WITH in unsupported_arguments.py")

    def test_every_layer_that_we_support_is_one_of_keras(self):
        self.assertEqual(set(keras_layers.supported()) - set(keras_layers.keras_classes()), set())

    def test_every_layer_that_we_support_is_drawn(self):
        drawn = {*random_models.LAYERS, *random_models.MERGES, *random_models.OTHERS}
        self.assertEqual(set(keras_layers.supported()) - drawn, set(), "add them to random_models.py")
