// Converts the names of losses, metrics and optimizers between Keras' files and training files.
// Private to this package.
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/json.h"
#include "runtime/optimizer/optimizer.h"

namespace tfjob::keras {

// Returns the training file's name for a Keras class, function or abbreviation:
// "mean_squared_error" for "MeanSquaredError", "mean_squared_error" and "mse". For an unknown name,
// returns a name that is invalid in a training file.
std::string TrainingName(std::string_view written);
// Returns the optimizer's name in the training file: "adam".
std::string OptimizerName(optimizer::Kind kind);
// Returns the name of the Keras class for a loss or, if `metric` is true, for a metric:
// "MeanSquaredError".
std::string ClassName(std::string_view name, bool metric);

// Removes the arguments of a metric that equal Keras' defaults.
void DropDefaults(Json& keys);

}  // namespace tfjob::keras
