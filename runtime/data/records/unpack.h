// Unpacks files that are compressed with gzip or zlib, as TensorFlow's TFRecordWriter compresses
// them.
#pragma once

#include <cstdint>
#include <string_view>

#include "runtime/base/status.h"
#include "runtime/data/records/temporary_file.h"
#include "runtime/io/random_access_file.h"

namespace tfjob::data {

// Returns whether a file that starts with the bytes `start` is compressed. Returns false if the
// file starts with a valid record header, or with text, even if the first bytes look like a zlib
// header. The result is more reliable for a longer `start`, up to a few thousand bytes.
bool IsCompressed(std::string_view start);

// Appends the unpacked content of the file to `to`. Returns DataLoss, with the offset, if the file
// is damaged; the content before the damage is appended nevertheless. Returns InvalidArgument if
// the file unpacks to more than kFreeUnpacked bytes and to more than a hundred times its size.
Status Unpack(const io::RandomAccessFile& file, TemporaryFile& to);

inline constexpr uint64_t kFreeUnpacked = 64 << 20;

}  // namespace tfjob::data
