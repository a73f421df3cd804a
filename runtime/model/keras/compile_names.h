// Converts the names of losses, metrics and optimizers between Keras' files and training files.
// Private to this package.
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/json.h"
#include "runtime/optimizer/optimizer.h"

namespace tfjob::keras {

// Returns the training file's name for a class, a function or an abbreviation of Keras:
// "mean_squared_error" for "MeanSquaredError", "mean_squared_error" and "mse". For any other name,
// returns a name that no training file accepts.
std::string TrainingName(std::string_view written);
// Returns the optimizer's name in the training file: "adam".
std::string OptimizerName(optimizer::Kind kind);
// Returns the name of Keras' class for a loss or, if `metric` is true, for a metric:
// "MeanSquaredError".
std::string ClassName(std::string_view name, bool metric);

// Erases the arguments of a metric that have Keras' default value.
void DropDefaults(Json& keys);

}  // namespace tfjob::keras
