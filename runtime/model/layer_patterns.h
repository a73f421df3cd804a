// Changes how those layers are trained whose names match patterns in the training file.
//
// Patterns are shell patterns (fnmatch), which are matched against the layer's name with the names
// of the enclosing nested models prepended: "encoder/dense_1". `*` matches any text, including
// slashes. If a pattern matches no layer, the functions return InvalidArgument and leave the model
// unchanged.
#pragma once

#include <span>
#include <string>

#include "runtime/model/model.h"

namespace tfjob::model {

// Freezes the matching layers (`model.frozen`), like Keras' `layer.trainable = False`: their
// variables keep their values, and BatchNormalization uses its moving statistics.
Status Freeze(Model& model, std::span<const std::string> patterns);

// Saves memory in training: the matching layers are computed a second time for their gradients
// (`model.recompute`), so that only their outputs are kept until then, and not the values inside
// them. A nested model that matches is recomputed as a whole. The results stay the same.
Status Recompute(Model& model, std::span<const std::string> patterns);

}  // namespace tfjob::model
