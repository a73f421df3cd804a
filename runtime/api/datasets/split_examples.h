// Splits arrays in memory into examples to train on and examples to evaluate
// (FitOptions::validation_split). Private to this package.
#pragma once

#include <utility>

#include "runtime/api/access.h"

namespace tfjob::api {

// Returns the first ⌊n · (1 - fraction)⌋ of the n examples, and then the remaining ones, as in
// Keras. Returns InvalidArgument if the fraction is not from 0 to below 1, if the examples are in
// files, or if one of the two parts would be empty.
StatusOr<std::pair<Dataset, Dataset>> SplitExamples(const Dataset& dataset, double fraction);

}  // namespace tfjob::api
