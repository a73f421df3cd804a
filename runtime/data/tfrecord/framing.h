// Finds and reads the records of TFRecord files, regardless of the payloads. See
// runtime/io/record.h for the framing.
#pragma once

#include <cstddef>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "runtime/base/status.h"
#include "runtime/data/records/record_files.h"
#include "runtime/data/records/record_index.h"
#include "runtime/data/records/record_scanner.h"

namespace tfjob::data {

// Returns an error if a payload is invalid. The message gives the reason, such as "it is not a
// tf.train.Example".
using PayloadCheck = absl::FunctionRef<Status(std::string_view payload)>;

// Visits the records of file `file`. If `check` is not null, also reads the payloads, and reports
// damage if the checksum of a payload is wrong or if `check` rejects the payload. If the length of
// a record is damaged, continues at the next header whose checksum is correct. Reports an empty
// file as damaged.
Status ScanFramedRecords(const RecordFiles& files, size_t file, RecordFileReader& reader,
                         const PayloadCheck* check, const RecordScanner::Visitor& visitor);

// Reads and checks a record. Returns its payload, which stays valid until the reader's next call.
// Returns DataLoss, with the file and the offset, if the record is damaged.
StatusOr<std::string_view> ReadFramedRecord(const RecordFiles& files, RecordFileReader& reader,
                                            const RecordPlace& place);

}  // namespace tfjob::data
