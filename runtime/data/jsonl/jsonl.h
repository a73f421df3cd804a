// Creates a source of examples from files of JSON lines (jsonlines.org). Each line is a JSON object
// whose members are the fields of an example. Lines end with "\n" or "\r\n", blank lines are
// ignored, and a file may start with a UTF-8 byte order mark.
#pragma once

#include <memory>

#include "runtime/base/status.h"
#include "runtime/data/records/record_format.h"
#include "runtime/data/records/record_source.h"
#include "runtime/data/source.h"

namespace tfjob::data {

// Returns the format of such records. A feature is read from the member with the same name: a
// number if the shape is [], and otherwise nested lists of numbers with that shape. If the feature
// is `variable`, the outermost list may be shorter. true and false are read as 1 and 0. A feature
// with `tokens` is a string, and a feature with a `vocabulary` has strings instead of numbers. A
// member that is null counts as missing, and other members are ignored. A feature must not be
// `raw`.
std::unique_ptr<const RecordFormat> JsonLinesFormat();

// Opens files of JSON lines. Propagates errors from OpenRecords.
StatusOr<std::shared_ptr<const Source>> OpenJsonLines(const RecordOptions& options);

}  // namespace tfjob::data
