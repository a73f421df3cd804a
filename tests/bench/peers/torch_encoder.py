"""Runs the case encoder in PyTorch."""

import torch_model_step

torch_model_step.main("encoder", torch_model_step.make_encoder)
