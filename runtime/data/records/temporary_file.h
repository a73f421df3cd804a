// Defines temporary files without a name, for data that do not fit in memory. The disk space of a
// file is released when the file is closed or the process exits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "runtime/base/status.h"

namespace tfjob::data {

// Returns the folder for temporary files: `folder` or, if that is empty, TMPDIR or /tmp.
std::string TemporaryFolder(const std::string& folder);

// A temporary file. Movable. Only one thread may append.
class TemporaryFile {
 public:
  // Creates an empty file. The errors from all functions name the folder and the key of the
  // training file that sets this folder.
  static StatusOr<TemporaryFile> Create(const std::string& folder);
  TemporaryFile(TemporaryFile&& other) noexcept;
  TemporaryFile& operator=(TemporaryFile&&) = delete;
  ~TemporaryFile();

  Status Append(std::string_view bytes);
  uint64_t size() const { return size_; }
  // Fills `bytes` with the file's content, starting at byte `offset`. Any number of threads may
  // call this function.
  Status Read(uint64_t offset, std::span<std::byte> bytes) const;
  // Maps the whole file, which must not be empty, into memory. The pages are not anonymous memory,
  // so the kernel can reclaim them at any time. The span stays valid as long as this object, or the
  // object to which it is moved, exists. Must be called at most once, after the last Append.
  StatusOr<std::span<const std::byte>> Map();

 private:
  TemporaryFile(std::string folder, int fd) : folder_(std::move(folder)), fd_(fd) {}
  Status Failed(int error, std::string_view what) const;

  std::string folder_;
  int fd_;
  uint64_t size_ = 0;
  void* memory_ = nullptr;
};

}  // namespace tfjob::data
