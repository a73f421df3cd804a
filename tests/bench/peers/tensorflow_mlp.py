"""Runs the case mlp in TensorFlow."""

import tensorflow_fashion_mnist

tensorflow_fashion_mnist.main("mlp", tensorflow_fashion_mnist.make_mlp)
