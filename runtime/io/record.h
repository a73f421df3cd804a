// Implements the framing of TFRecord and event files: length (u64), masked CRC-32C of the length's
// 8 bytes, payload, masked CRC-32C of the payload; all little-endian.
// https://www.tensorflow.org/tutorials/load_data/tfrecord#tfrecords_format_details
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"

namespace tfjob::io {

// Appends one framed record to `out`.
void AppendRecord(std::string_view payload, std::string& out);

// The number of bytes before and after a payload.
inline constexpr size_t kRecordHeader = 12, kRecordFooter = 4;

// Returns the length of the payload according to the first kRecordHeader bytes of a record, or
// nullopt if their checksum is wrong.
std::optional<uint64_t> RecordLength(std::string_view header);
// Returns whether the footer, the first kRecordFooter bytes of `footer`, contains the checksum of
// the payload.
bool IsIntact(std::string_view payload, std::string_view footer);
// Returns the CRC-32C of the payload according to the footer, the first kRecordFooter bytes.
uint32_t PayloadCrc32c(std::string_view footer);

// Returns all records in the content of a file. Omits an incomplete last record, which remains if a
// writer is killed. Returns DataLoss if a checksum is wrong; the message contains the record's
// offset.
StatusOr<std::vector<std::string>> ParseRecords(std::string_view content);

}  // namespace tfjob::io
