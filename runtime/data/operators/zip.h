// Combines several sources with different fields into a source whose examples have all of these
// fields.
#pragma once

#include <vector>

#include "runtime/data/operators/fields.h"

namespace tfjob::data {

// Returns a source whose example i consists of example i of every source, as tf.data.Dataset.zip
// does. It has as many examples as the smallest source. At least one source is required. Returns
// InvalidArgument if two sources have a field of the same name.
StatusOr<SourcePtr> Zip(std::vector<SourcePtr> sources);

}  // namespace tfjob::data
