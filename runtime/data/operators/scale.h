// Multiplies fields of a source by a factor when a batch is read.
#pragma once

#include <set>
#include <string>

#include "runtime/data/operators/fields.h"

namespace tfjob::data {

// Returns a source in which these fields are multiplied by the factor, in addition to the scale of
// a column. Only columns of floating-point numbers are scaled. The scaled fields become float32, so
// operators that copy values, such as Cache, copy the scaled values. `fields` should therefore
// contain only fields that are float32 in the model. Returns the source itself if the factor is 1
// or `fields` is empty.
SourcePtr Scale(SourcePtr source, std::set<std::string> fields, float factor);

}  // namespace tfjob::data
