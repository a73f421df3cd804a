// Translates calls of TensorFlow functions, such as tf.math.add, to calls of keras.ops functions.
// Functional models of tf.keras 2 may contain calls of TensorFlow functions. Private to this
// package.
#pragma once

#include "runtime/base/json.h"
#include "runtime/base/status.h"

namespace tfjob::model {

// Returns whether the layer is a call of a TensorFlow function: a TFOpLambda or a SlicingOpLambda.
bool IsTensorflowFunction(const JsonField& layer);
// Converts the layer to the form in which Keras 3 writes a call of a keras.ops function.
// IsTensorflowFunction must return true for the layer. Returns InvalidArgument, with the path in
// the file, if the function or an argument is not supported.
StatusOr<Json> TranslateTensorflowFunction(const JsonField& layer);
// Rewrites a translation error for this layer to name the TensorFlow function and the paths in the
// file. Returns OK unchanged.
Status InTermsOfTensorflow(const JsonField& layer, const Status& error);

}  // namespace tfjob::model
