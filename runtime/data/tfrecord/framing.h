// Finds and reads the records of TFRecord files, whatever their payloads are (runtime/io/record.h
// describes the framing).
#pragma once

#include <cstddef>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "runtime/base/status.h"
#include "runtime/data/records/record_files.h"
#include "runtime/data/records/record_index.h"
#include "runtime/data/records/record_scanner.h"

namespace tfjob::data {

// Returns an error whose message says why a payload is not valid, such as "it is not a
// tf.train.Example".
using PayloadCheck = absl::FunctionRef<Status(std::string_view payload)>;

// Visits the records of file number `file`. Unless `check` is null, reads the payloads, too; a
// payload is damaged if its checksum is wrong or if `check` rejects it. If the length of a record
// is damaged, the next place with a header whose checksum is correct is taken for the start of a
// record. An empty file is damaged.
Status ScanFramedRecords(const RecordFiles& files, size_t file, RecordFileReader& reader,
                         const PayloadCheck* check, const RecordScanner::Visitor& visitor);

// Reads a record, and checks it. Returns its payload, which stays valid until the reader's next
// call. Returns DataLoss, with the file and the offset, if the record is damaged.
StatusOr<std::string_view> ReadFramedRecord(const RecordFiles& files, RecordFileReader& reader,
                                            const RecordPlace& place);

}  // namespace tfjob::data
