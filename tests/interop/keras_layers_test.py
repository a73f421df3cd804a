"""Checks that the table of layers in docs/guides/coming-from-keras.md is current, and that
random_models.py draws every layer in it. run.sh runs it."""
import unittest

import harness  # noqa: F401  before Keras

import keras_layers
import random_models


class KerasLayers(unittest.TestCase):
    def test_the_page_is_current(self):
        self.assertEqual(keras_layers.parts()[1], keras_layers.table(),
                         "run tests/interop/keras_layers.py in the environment of tests/interop/run.sh")

    def test_every_layer_that_we_support_is_one_of_keras(self):
        self.assertEqual(set(keras_layers.supported()) - set(keras_layers.keras_classes()), set())

    def test_every_layer_that_we_support_is_drawn(self):
        drawn = {*random_models.LAYERS, *random_models.MERGES, *random_models.OTHERS}
        self.assertEqual(set(keras_layers.supported()) - drawn, set(), "add them to random_models.py")
