"""Runs the case resnet-50 in TensorFlow."""

import tensorflow_model_step

tensorflow_model_step.main("resnet-50")
