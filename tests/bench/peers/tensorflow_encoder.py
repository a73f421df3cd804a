"""Runs the case encoder in TensorFlow."""

import tensorflow_model_step

tensorflow_model_step.main("encoder")
