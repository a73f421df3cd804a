"""Runs the case lstm in TensorFlow."""

import tensorflow_model_step

tensorflow_model_step.main("lstm")
