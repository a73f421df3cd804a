#include "runtime/io/data_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include "runtime/base/file.h"
#include "runtime/base/thread_pool.h"
#include "runtime/io/crc32c.h"

namespace tfjob::io {
namespace {

// The number of bytes read at once. It is small enough that the bytes are still in the cache when
// their checksum is computed.
constexpr size_t kChunk = 256 << 10;
// The size of the shares into which a read is split among threads.
constexpr size_t kShare = 4 << 20;

}  // namespace

StatusOr<std::shared_ptr<const DataFile>> DataFile::Open(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return ErrnoStatus(errno, StrCat("open ", path));
  return std::shared_ptr<const DataFile>(new DataFile(path, fd));
}

DataFile::~DataFile() {
  close(fd_);
}

Status DataFile::Read(int64_t offset, std::span<std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t count = pread(fd_, bytes.data(), bytes.size(), offset);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return ErrnoStatus(errno, StrCat("read ", path_));
    if (count == 0) {
      return DataLoss(path_, " ends before byte ", offset + static_cast<int64_t>(bytes.size()));
    }
    bytes = bytes.subspan(static_cast<size_t>(count));
    offset += count;
  }
  return OkStatus();
}

StatusOr<uint32_t> DataFile::ReadWithChecksum(int64_t offset, std::span<std::byte> bytes,
                                              ThreadPool* pool) const {
  if (pool == nullptr) {
    uint32_t crc = 0;
    while (!bytes.empty()) {
      const std::span<std::byte> chunk = bytes.first(std::min(bytes.size(), kChunk));
      RETURN_IF_ERROR(Read(offset, chunk));
      crc = ExtendCrc32c(crc, chunk);
      bytes = bytes.subspan(chunk.size());
      offset += static_cast<int64_t>(chunk.size());
    }
    return crc;
  }
  const size_t count = (bytes.size() + kShare - 1) / kShare;
  const auto share = [&](size_t i) {
    return bytes.subspan(i * kShare, std::min(kShare, bytes.size() - i * kShare));
  };
  std::vector<StatusOr<uint32_t>> read(count, uint32_t{0});
  pool->ParallelFor(static_cast<int64_t>(count), 1, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i)
      read[i] = ReadWithChecksum(offset + static_cast<int64_t>(i * kShare), share(i));
  });
  uint32_t crc = 0;
  for (size_t i = 0; i < count; ++i) {
    RETURN_IF_ERROR(read[i].status());
    crc = JoinCrc32c(crc, *read[i], share(i).size());
  }
  return crc;
}

StatusOr<uint32_t> DataFile::Checksum(int64_t offset, int64_t size) const {
  std::vector<std::byte> chunk(static_cast<size_t>(std::min<int64_t>(size, kChunk)));
  uint32_t crc = 0;
  for (int64_t at = 0; at < size; at += static_cast<int64_t>(chunk.size())) {
    const auto left = static_cast<size_t>(size - at);
    const std::span<std::byte> piece = std::span(chunk).first(std::min(chunk.size(), left));
    RETURN_IF_ERROR(Read(offset + at, piece));
    crc = ExtendCrc32c(crc, piece);
  }
  return crc;
}

}  // namespace tfjob::io
