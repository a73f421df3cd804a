// Reads from any position of a file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "runtime/base/status.h"

namespace tfjob::io {

// Movable. Any number of threads may read at the same time.
class RandomAccessFile {
 public:
  // Returns InvalidArgument if `path` is not a regular file.
  static StatusOr<RandomAccessFile> Open(const std::string& path);
  // Takes ownership of an open descriptor. `name` is the file's name in error messages.
  static StatusOr<RandomAccessFile> Adopt(int fd, std::string name);
  RandomAccessFile(RandomAccessFile&& other) noexcept;
  RandomAccessFile& operator=(RandomAccessFile&&) = delete;
  ~RandomAccessFile();

  // Fills all of `bytes` from the file, starting at byte `offset`. Returns DataLoss if the file is
  // too short.
  Status Read(uint64_t offset, std::span<std::byte> bytes) const;

  const std::string& path() const { return path_; }
  int descriptor() const { return fd_; }
  uint64_t size() const { return size_; }  // the size when the file was opened

 private:
  RandomAccessFile(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}

  std::string path_;
  int fd_;
  uint64_t size_ = 0;
};

}  // namespace tfjob::io
