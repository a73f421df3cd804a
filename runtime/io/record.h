// The framing of TFRecord and event files: length (u64), masked CRC-32C of its 8 bytes, the
// payload, its masked CRC-32C; all little-endian.
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

// All records of a file's content. A torn last record is left out (a writer may have died in it); a
// wrong checksum is DataLoss with its offset.
StatusOr<std::vector<std::string>> ParseRecords(std::string_view content);

}  // namespace tfjob::io
