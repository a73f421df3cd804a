"""Runs the case mlp in PyTorch."""

import torch_fashion_mnist

torch_fashion_mnist.main("mlp", torch_fashion_mnist.make_mlp, torch_fashion_mnist.MODES)
