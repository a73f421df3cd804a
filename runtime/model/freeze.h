// Freezes layers of a model by the patterns of the training file (`model.frozen`).
#pragma once

#include <span>
#include <string>

#include "runtime/model/model.h"

namespace tfjob::model {

// Freezes the layers that match any of the patterns, like Keras' `layer.trainable = False`: their
// variables keep their values, and a BatchNormalization normalises with its moving statistics. A
// pattern is matched as in a shell (fnmatch) against the layer's name, to which the names of the
// enclosing nested models are prepended: "encoder/dense_1". `*` matches any text, including
// slashes. Returns InvalidArgument, and leaves the model unchanged, if a pattern matches no layer.
Status Freeze(Model& model, std::span<const std::string> patterns);

}  // namespace tfjob::model
