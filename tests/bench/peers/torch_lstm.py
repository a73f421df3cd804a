"""Runs the case lstm in PyTorch."""

import torch_model_step

torch_model_step.main("lstm", torch_model_step.make_lstm)
