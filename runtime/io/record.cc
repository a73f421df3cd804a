#include "runtime/io/record.h"

#include <cstdint>
#include <cstring>

#include "runtime/io/crc32c.h"

namespace tfjob::io {
namespace {

template <typename T>
void AppendLittleEndian(T value, std::string& out) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));  // x86-64 is little-endian
  out.append(bytes, sizeof(T));
}

template <typename T>
T LoadLittleEndian(std::string_view data) {
  T value;
  std::memcpy(&value, data.data(), sizeof(T));
  return value;
}

}  // namespace

void AppendRecord(std::string_view payload, std::string& out) {
  const size_t start = out.size();
  AppendLittleEndian<uint64_t>(payload.size(), out);
  AppendLittleEndian<uint32_t>(MaskCrc(Crc32c(std::string_view(out).substr(start, 8))), out);
  out.append(payload);
  AppendLittleEndian<uint32_t>(MaskCrc(Crc32c(payload)), out);
}

std::optional<uint64_t> RecordLength(std::string_view header) {
  if (MaskCrc(Crc32c(header.substr(0, 8))) != LoadLittleEndian<uint32_t>(header.substr(8)))
    return std::nullopt;
  return LoadLittleEndian<uint64_t>(header);
}

bool IsIntact(std::string_view payload, std::string_view footer) {
  return MaskCrc(Crc32c(payload)) == LoadLittleEndian<uint32_t>(footer);
}

uint32_t PayloadCrc32c(std::string_view footer) {
  return UnmaskCrc(LoadLittleEndian<uint32_t>(footer));
}

StatusOr<std::vector<std::string>> ParseRecords(std::string_view content) {
  std::vector<std::string> records;
  size_t offset = 0;
  while (content.size() - offset >= kRecordHeader) {
    const std::optional<uint64_t> length = RecordLength(content.substr(offset, kRecordHeader));
    if (!length)
      return DataLoss("record at byte ", offset, ": the checksum of its length is wrong");
    const size_t left = content.size() - offset - kRecordHeader;
    if (left < kRecordFooter || *length > left - kRecordFooter) break;  // torn
    const std::string_view payload = content.substr(offset + kRecordHeader, *length);
    if (!IsIntact(payload, content.substr(offset + kRecordHeader + *length)))
      return DataLoss("record at byte ", offset, ": the checksum of its payload is wrong");
    records.emplace_back(payload);
    offset += kRecordHeader + *length + kRecordFooter;
  }
  return records;
}

}  // namespace tfjob::io
