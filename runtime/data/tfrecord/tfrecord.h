// Creates a source of examples from TFRecord files of tf.train.Example or tf.train.SequenceExample.
#pragma once

#include <memory>

#include "runtime/base/status.h"
#include "runtime/data/records/record_format.h"
#include "runtime/data/records/record_source.h"
#include "runtime/data/source.h"

namespace tfjob::data {

// Returns the format of such records. A feature must have the kind of list that its type requires:
// kFloat32 a float_list, kInt64 an int64_list, and `raw`, `image` or `tokens` a bytes_list with one
// string. A feature with a `vocabulary` has a bytes_list of terms. A `sequence` is either a feature
// list of a SequenceExample, or a feature whose list contains the values of all steps.
std::unique_ptr<const RecordFormat> TfRecordFormat();

// Opens TFRecord files. Propagates errors from OpenRecords.
StatusOr<std::shared_ptr<const Source>> OpenTfRecords(const RecordOptions& options);

}  // namespace tfjob::data
