// Makes pipelines batch examples of similar lengths, so that batches have little padding, as
// tf.data.Dataset.bucket_by_sequence_length does.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/data/operators/fields.h"

namespace tfjob::data {

struct BucketByLengthOptions {
  // Padded fields whose first axes have the same number of places. The length of an example is that
  // of its fields up to the last place with a value other than the padding, but at least 1.
  std::vector<std::string> fields;
  std::optional<double> padding = {};  // unset: that of each field (Field::padding), or 0
  // The maximum lengths of the buckets, ascending and less than the number of places. An additional
  // bucket, whose maximum length is the number of places, has the other examples. May be empty.
  std::vector<int64_t> boundaries;
};

// Reads the fields of all examples once, and keeps 4 bytes per example (Source::buckets). The
// examples and their order do not change. Returns InvalidArgument if a field is missing, has a
// different number of places or has several paddings, if the boundaries are not as described, or if
// there are more examples than Buckets::kMostRows. Propagates errors from reading the examples.
StatusOr<SourcePtr> BucketByLength(SourcePtr source, const BucketByLengthOptions& options);

}  // namespace tfjob::data
