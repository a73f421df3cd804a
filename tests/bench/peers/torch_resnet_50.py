"""Runs the case resnet-50 in PyTorch."""

import torch_model_step

torch_model_step.main("resnet-50", torch_model_step.make_resnet_50, torch_model_step.IMAGE_MODES)
