// Reads parts of a file. Private to this package.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "runtime/base/status.h"

namespace tfjob {
class ThreadPool;
}  // namespace tfjob

namespace tfjob::io {

// A file that is open for reading. Thread-safe.
class DataFile {
 public:
  static StatusOr<std::shared_ptr<const DataFile>> Open(const std::string& path);
  ~DataFile();
  DataFile(const DataFile&) = delete;
  DataFile& operator=(const DataFile&) = delete;

  // Fills `bytes` from the file, starting at byte `offset`. Returns DataLoss if the file is too
  // short.
  Status Read(int64_t offset, std::span<std::byte> bytes) const;
  // Like Read, but also uses the threads of `pool` unless it is null. Returns the checksum of the
  // bytes (crc32c.h).
  StatusOr<uint32_t> ReadWithChecksum(int64_t offset, std::span<std::byte> bytes,
                                      ThreadPool* pool = nullptr) const;
  // Returns the checksum of `size` bytes, starting at byte `offset`. Reads them piece by piece.
  StatusOr<uint32_t> Checksum(int64_t offset, int64_t size) const;

 private:
  DataFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}

  const std::string path_;
  const int fd_;
};

}  // namespace tfjob::io
