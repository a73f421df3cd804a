// Changes how layers and variables are trained if their names match patterns in the training file.
//
// Patterns are shell patterns (fnmatch), which are matched against the layer's name with the names
// of the enclosing nested models prepended: "encoder/dense_1". `*` matches any text, including
// slashes. If a pattern matches nothing, the functions return InvalidArgument and leave the model
// unchanged.
#pragma once

#include <span>
#include <string>

#include "runtime/model/model.h"

namespace tfjob::model {

// Freezes the matching layers (`model.frozen`), like Keras' `layer.trainable = False`: their
// variables keep their values, and BatchNormalization uses its moving statistics. Also freezes
// single variables whose full names match ("encoder/dense_1/kernel"): training keeps their values,
// even those of moving statistics, but the layer otherwise works as before. If the model does not
// state the types of its inputs, its variables are unknown; CallTypes (model.h) then returns the
// error if a pattern that might match a variable matches nothing.
Status Freeze(Model& model, std::span<const std::string> patterns);

// Saves memory in training: the backward pass computes the matching layers a second time
// (`model.recompute`), so only their outputs, and not the values inside them, are kept from the
// forward pass. A nested model that matches is recomputed as a whole. The results stay the same.
Status Recompute(Model& model, std::span<const std::string> patterns);

}  // namespace tfjob::model
