// Joins several sources with the same fields into one. All functions require at least one source.
// They return InvalidArgument if the fields differ (CheckSameFields), or if the sources have more
// than Selection::kMost examples in total.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/data/operators/fields.h"
#include "runtime/data/operators/mixture.h"

namespace tfjob::data {

// Returns a source with the examples of all sources, one source after the other, as
// tf.data.Dataset.concatenate does.
StatusOr<SourcePtr> Concatenate(std::vector<SourcePtr> sources);

// Mixes the sources in proportion to their weights (see Mixture). There is one weight per source.
// Mix propagates errors from Mixture::Create.
struct MixOptions {
  std::vector<double> weights;
  Mixture::Stop stop = Mixture::Stop::kFirst;
  uint64_t seed = 0;
};
StatusOr<SourcePtr> Mix(std::vector<SourcePtr> sources, const MixOptions& options);

// Takes blocks of the sources in turn, as tf.data.Dataset.interleave does. See Interleaving.
// Interleave propagates errors from Interleaving::Create.
struct InterleaveOptions {
  int64_t cycle_length = 16;
  int64_t block_length = 1;
};
StatusOr<SourcePtr> Interleave(std::vector<SourcePtr> sources, const InterleaveOptions& options);

}  // namespace tfjob::data
