// Implements the framing of TFRecord and event files: length (u64), masked CRC-32C of the length's
// 8 bytes, payload, masked CRC-32C of the payload; all little-endian.
// https://www.tensorflow.org/tutorials/load_data/tfrecord#tfrecords_format_details
#pragma once

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"

namespace tfjob::io {

// Appends one framed record to `out`.
void AppendRecord(std::string_view payload, std::string& out);

// Returns all records in the content of a file. Omits an incomplete last record, since its writer
// may have died. If a checksum is wrong, returns DataLoss with a message that names the record's
// offset.
StatusOr<std::vector<std::string>> ParseRecords(std::string_view content);

}  // namespace tfjob::io
