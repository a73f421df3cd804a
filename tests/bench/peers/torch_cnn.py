"""Runs the case cnn in PyTorch."""

import torch_fashion_mnist

torch_fashion_mnist.main("cnn", torch_fashion_mnist.make_cnn, torch_fashion_mnist.IMAGE_MODES)
