// Unpacks files that are compressed with gzip or zlib, as TensorFlow's TFRecordWriter compresses
// them.
#pragma once

#include <cstdint>
#include <string_view>

#include "runtime/base/status.h"
#include "runtime/data/records/temporary_file.h"
#include "runtime/io/random_access_file.h"

namespace tfjob::data {

// Returns whether a file that begins with the bytes `start` is compressed. A file that begins with
// a valid header of a record is not, and neither is text, although its first bytes may look like a
// zlib header. More bytes, up to a few thousand, make the answer more certain.
bool IsCompressed(std::string_view start);

// Appends the unpacked content of the file to `to`. Returns DataLoss, with the offset, if the file
// is damaged; everything before the damage has then been appended. Returns InvalidArgument if the
// file unpacks to more than kFreeUnpacked bytes and to more than a hundred times its size.
Status Unpack(const io::RandomAccessFile& file, TemporaryFile& to);

inline constexpr uint64_t kFreeUnpacked = 64 << 20;

}  // namespace tfjob::data
