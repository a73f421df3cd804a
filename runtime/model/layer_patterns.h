// Changes how layers are trained, by the patterns of their names in the training file.
//
// A pattern is matched as in a shell (fnmatch) against the layer's name, to which the names of the
// enclosing nested models are prepended: "encoder/dense_1". `*` matches any text, including
// slashes. The functions return InvalidArgument, and leave the model unchanged, if a pattern
// matches no layer.
#pragma once

#include <span>
#include <string>

#include "runtime/model/model.h"

namespace tfjob::model {

// Freezes the matching layers (`model.frozen`), like Keras' `layer.trainable = False`: their
// variables keep their values, and a BatchNormalization normalises with its moving statistics.
Status Freeze(Model& model, std::span<const std::string> patterns);

// Saves memory in training: the matching layers are computed a second time for their gradients
// (`model.recompute`), so that only their outputs are kept until then, and not the values inside
// them. A nested model that matches is recomputed as a whole. The results stay the same.
Status Recompute(Model& model, std::span<const std::string> patterns);

}  // namespace tfjob::model
