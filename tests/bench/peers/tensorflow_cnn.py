"""Runs the case cnn in TensorFlow."""

import tensorflow_fashion_mnist

tensorflow_fashion_mnist.main("cnn", tensorflow_fashion_mnist.make_cnn)
