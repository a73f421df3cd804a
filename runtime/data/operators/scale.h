// Multiplies fields of a source by a factor when a batch is made.
#pragma once

#include <set>
#include <string>

#include "runtime/data/operators/fields.h"

namespace tfjob::data {

// Returns a source in which these fields are multiplied by the factor, in addition to the scale of
// a column. Only columns of floating-point numbers are scaled. The scaled fields become float32, so
// that operators that copy values, such as Cache, copy scaled ones. `fields` should therefore
// contain only fields that the model takes as float32. Returns the source itself if the factor is 1
// or `fields` is empty.
SourcePtr Scale(SourcePtr source, std::set<std::string> fields, float factor);

}  // namespace tfjob::data
