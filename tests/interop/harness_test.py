"""Tests the rule by which the other tests compare numbers with those of Keras in float64. run.sh runs it."""
import unittest

from harness import differences, in_type

import numpy as np
import keras
import tensorflow as tf

L = keras.layers


class Rule(unittest.TestCase):
    EXACT = {"a": np.array([[-4.0, 2.0]]), "b": np.array([1e-3])}

    def found(self, shift, theirs=None):
        """Returns the names of the values that differ if the first one is shifted."""
        def single():
            if theirs is None:
                raise AssertionError("Keras' float32 is not needed")
            return theirs

        ours = {**self.EXACT, "a": self.EXACT["a"] + [0, shift]}
        return [text.split(":")[0] for text in differences(ours, self.EXACT, single, 1e-5)]

    def test_the_bound_is_relative_to_the_largest_value(self):
        self.assertEqual(self.found(3.9e-5), [])
        self.assertEqual(self.found(4.1e-5, self.EXACT), ["a"])
        self.assertEqual(self.found(-4.1e-5, self.EXACT), ["a"])
        self.assertEqual(self.found(np.nan, self.EXACT), ["a"])

    def test_twice_the_error_of_keras_is_allowed(self):
        theirs = {**self.EXACT, "a": self.EXACT["a"] + [1e-4, 0]}
        self.assertEqual(self.found(1.9e-4, theirs), [])
        self.assertEqual(self.found(2.1e-4, theirs), ["a"])


class Pooling(unittest.TestCase):
    """The harness pools volumes in float64. If no elements are equal, the values and the gradients are those of
    TensorFlow in float32."""

    def pooled(self, make, x):
        """Returns the pooled values, and the gradient of their sum with different weights."""
        x = tf.Variable(x.astype(keras.config.floatx()))
        with tf.GradientTape() as tape:
            y = make()(x)
            total = tf.reduce_sum(y * tf.reshape(tf.cast(tf.range(tf.size(y)), y.dtype), tf.shape(y)))
        self.assertEqual(y.dtype.name, keras.config.floatx())
        return np.asarray(y), np.asarray(tape.gradient(total, x))

    def test_volumes(self):
        x = np.random.default_rng(2).standard_normal((2, 5, 6, 4, 3))
        cases = [(f"Adaptive{kind}Pooling3D", ((3, 2, 2),), {}) for kind in ("Max", "Average")]
        cases += [(f"{kind}Pooling3D", (size,), {"strides": strides, "padding": padding})
                  for kind in ("Max", "Average") for size in (2, (2, 3, 1), (3, 2, 3)) for strides in (None, 1, (2, 1, 2))
                  for padding in ("valid", "same")]
        for name, arguments, options in cases:
            with self.subTest(layer=name, arguments=arguments, **options):
                make = lambda: getattr(L, name)(*arguments, **options)
                single = in_type("float32", lambda: self.pooled(make, x))
                for ours, theirs in zip(in_type("float64", lambda: self.pooled(make, x)), single):
                    self.assertLessEqual(np.abs(ours - theirs).max(), 1e-6 * np.abs(theirs).max())
