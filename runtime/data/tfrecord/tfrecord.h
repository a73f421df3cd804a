// Makes a source of examples from TFRecord files of tf.train.Example or tf.train.SequenceExample.
#pragma once

#include <memory>

#include "runtime/base/status.h"
#include "runtime/data/records/record_format.h"
#include "runtime/data/records/record_source.h"
#include "runtime/data/source.h"

namespace tfjob::data {

// The format of the records. A feature must have the list that its type needs: kFloat32 a
// float_list, kInt64 an int64_list, and `raw` or `image` a bytes_list with one string. A `sequence`
// is either a feature list of a SequenceExample, or a feature whose list contains the values of all
// steps.
std::unique_ptr<const RecordFormat> TfRecordFormat();

// Returns the errors of OpenRecords.
StatusOr<std::shared_ptr<const Source>> OpenTfRecords(const RecordOptions& options);

}  // namespace tfjob::data
