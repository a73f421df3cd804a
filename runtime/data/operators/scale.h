// Multiplies fields of a source by a factor when a batch is read.
#pragma once

#include <set>
#include <string>

#include "runtime/data/operators/fields.h"

namespace tfjob::data {

// Returns a source that multiplies these fields by the factor, on top of any Column::scale. Only
// floating-point columns are scaled. The source reports the fields as float32, so that operators
// that copy values, such as Cache, copy the scaled values. For this reason, `fields` should contain
// only fields that are float32 in the model. Returns `source` itself if the factor is 1 or `fields`
// is empty.
SourcePtr Scale(SourcePtr source, std::set<std::string> fields, float factor);

}  // namespace tfjob::data
