// Freezes the layers that match the patterns in the training file (`model.frozen`).
#pragma once

#include <span>
#include <string>

#include "runtime/model/model.h"

namespace tfjob::model {

// Freezes the layers that match any of the patterns, like Keras' `layer.trainable = False`: their
// variables keep their values, and BatchNormalization uses its moving statistics. Patterns are
// shell patterns (fnmatch), which are matched against the layer's name with the names of the
// enclosing nested models prepended: "encoder/dense_1". `*` matches any text, including slashes. If
// a pattern matches no layer, returns InvalidArgument and leaves the model unchanged.
Status Freeze(Model& model, std::span<const std::string> patterns);

}  // namespace tfjob::model
