// Groups examples of similar lengths, so pipelines create batches with little padding, as
// tf.data.Dataset.bucket_by_sequence_length does.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/data/operators/fields.h"

namespace tfjob::data {

struct BucketByLengthOptions {
  // Padded fields whose first axes have the same length. The length of an example is the number of
  // positions up to the last one with a value other than padding in any of these fields, but at
  // least 1.
  std::vector<std::string> fields;
  std::optional<double> padding = {};  // unset: the padding of each field (Field::padding), or 0
  // The maximum lengths of the buckets, ascending, and less than the length of the fields. An
  // additional bucket contains the longer examples. May be empty.
  std::vector<int64_t> boundaries;
};

// Reads the fields of all examples once, and keeps 4 bytes per example (Source::buckets). The
// examples and their order do not change. Returns InvalidArgument if a field is missing, has a
// different length or has several paddings, if the boundaries are not as described, or if there are
// more examples than Buckets::kMostRows. Propagates errors from reading the examples.
StatusOr<SourcePtr> BucketByLength(SourcePtr source, const BucketByLengthOptions& options);

}  // namespace tfjob::data
