// Makes pipelines batch examples of similar lengths, so that batches have little padding, as
// tf.data.Dataset.bucket_by_sequence_length does.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/data/operators/fields.h"

namespace tfjob::data {

struct BucketByLengthOptions {
  // Fields whose first axis has the same number of places, which are padded. An example is as long
  // as the part of its fields up to the last place with another value than `padding`, but at least
  // 1.
  std::vector<std::string> fields;
  double padding = 0;
  // The greatest lengths of the buckets, ascending and less than the number of places, which is the
  // length of an additional bucket for the other examples. May be empty.
  std::vector<int64_t> boundaries;
};

// Reads the fields of all examples once, and keeps 4 bytes for each (Source::buckets). The examples
// and their numbers stay as they are. Returns the errors of reading, and InvalidArgument if a field
// is missing or has another number of places, if the boundaries are not as described, or if there
// are more examples than Buckets::kMostRows.
StatusOr<SourcePtr> BucketByLength(SourcePtr source, const BucketByLengthOptions& options);

}  // namespace tfjob::data
