// Reads and writes models in Keras' JSON form (model.to_json()). Also reads them in the training
// file's form.
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/json.h"
#include "runtime/base/status.h"
#include "runtime/model/model.h"

namespace tfjob::model {

// Reads the JSON of a Sequential or functional model in the form of Keras 3 or of tf.keras 2.
// Models may be nested. Returns InvalidArgument if a class or argument is not supported; the
// message names the layer, the class or the argument with its value, and what is supported. `what`
// describes the file in error messages.
StatusOr<Model> ReadKerasJson(std::string_view text, std::string_view what);

// Reads the list `model.layers` of the training file. A layer is written as `Dense: {units: 10}`,
// as `Flatten`, or in Keras' form {class_name, config}. Layers without a name are numbered as in
// Keras: dense, dense_1, …
StatusOr<Model> ReadLayers(const JsonField& layers);

// Converts a class name to snake case, as Keras does to name layers: "ReLU" → "re_lu".
std::string SnakeCase(std::string_view class_name);

// The index of a nested functional model's first call in Keras 3's lists of the outer model's
// inputs and outputs. In all other places, and for all other layers, calls are counted from 0.
inline constexpr int kFirstCallAtEnds = 1;

// Returns the model in Keras 3's JSON form, which keras.models.model_from_json can read.
Json WriteKerasJson(const Model& model);

}  // namespace tfjob::model
