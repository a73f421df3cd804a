// Makes several sources with the same fields one source. All functions return InvalidArgument if
// the fields differ (CheckSameFields), or if the sources have more than Selection::kMost examples
// together. At least one source is required.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/data/operators/fields.h"
#include "runtime/data/operators/mixture.h"

namespace tfjob::data {

// One source after the other, as tf.data.Dataset.concatenate.
StatusOr<SourcePtr> Concatenate(std::vector<SourcePtr> sources);

// In proportion to the weights, one per source; see Mixture, whose errors it returns.
struct MixOptions {
  std::vector<double> weights;
  Mixture::Stop stop = Mixture::Stop::kFirst;
  uint64_t seed = 0;
};
StatusOr<SourcePtr> Mix(std::vector<SourcePtr> sources, const MixOptions& options);

// Blocks of the sources in turn, as tf.data.Dataset.interleave; see Interleaving, whose errors it
// returns.
struct InterleaveOptions {
  int64_t cycle_length = 16;
  int64_t block_length = 1;
};
StatusOr<SourcePtr> Interleave(std::vector<SourcePtr> sources, const InterleaveOptions& options);

}  // namespace tfjob::data
