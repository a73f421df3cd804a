// Makes several sources with different fields one source, whose examples have the fields of all.
#pragma once

#include <vector>

#include "runtime/data/operators/fields.h"

namespace tfjob::data {

// Example i consists of example i of every source, as with tf.data.Dataset.zip. There are as many
// examples as in the smallest source. At least one source is required. Returns InvalidArgument if
// two sources have a field of the same name.
StatusOr<SourcePtr> Zip(std::vector<SourcePtr> sources);

}  // namespace tfjob::data
