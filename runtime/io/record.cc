#include "runtime/io/record.h"

#include <cstdint>
#include <cstring>

#include "runtime/io/crc32c.h"

namespace tfjob::io {
namespace {

constexpr size_t kHeader = 12;  // length and its checksum
constexpr size_t kFooter = 4;

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

StatusOr<std::vector<std::string>> ParseRecords(std::string_view content) {
  std::vector<std::string> records;
  size_t offset = 0;
  while (content.size() - offset >= kHeader) {
    const std::string_view header = content.substr(offset, kHeader);
    if (MaskCrc(Crc32c(header.substr(0, 8))) != LoadLittleEndian<uint32_t>(header.substr(8))) {
      return DataLoss("record at byte ", offset, ": the checksum of its length is wrong");
    }
    const uint64_t length = LoadLittleEndian<uint64_t>(header);
    const size_t left = content.size() - offset - kHeader;
    if (left < kFooter || length > left - kFooter) break;  // torn
    const std::string_view payload = content.substr(offset + kHeader, length);
    if (MaskCrc(Crc32c(payload)) !=
        LoadLittleEndian<uint32_t>(content.substr(offset + kHeader + length))) {
      return DataLoss("record at byte ", offset, ": the checksum of its payload is wrong");
    }
    records.emplace_back(payload);
    offset += kHeader + length + kFooter;
  }
  return records;
}

}  // namespace tfjob::io
