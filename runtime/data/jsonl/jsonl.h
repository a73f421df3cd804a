// Makes a source of examples from files of JSON lines (jsonlines.org): each line is a JSON object
// whose members are the fields of an example. Lines end with "\n" or "\r\n", blank lines are
// ignored, and a file may begin with a UTF-8 byte order mark.
#pragma once

#include <memory>

#include "runtime/base/status.h"
#include "runtime/data/records/record_format.h"
#include "runtime/data/records/record_source.h"
#include "runtime/data/source.h"

namespace tfjob::data {

// The format of the records. A feature is the member of the same name: a number if its shape is [],
// otherwise nested lists of numbers of that shape. If the feature is `variable`, the outermost list
// may be shorter. true and false are read as 1 and 0. A feature with `tokens` is a string, and one
// with a `vocabulary` has strings instead of numbers. A member that is null counts as missing.
// Members that no feature names are ignored. A feature must not be `raw`.
std::unique_ptr<const RecordFormat> JsonLinesFormat();

// Returns the errors of OpenRecords.
StatusOr<std::shared_ptr<const Source>> OpenJsonLines(const RecordOptions& options);

}  // namespace tfjob::data
