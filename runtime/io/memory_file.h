// Defines a file that exists only in memory, for data that another process reads or writes.
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/file_system.h"
#include "runtime/base/status.h"
#include "runtime/io/random_access_file.h"

namespace tfjob::io {

// A file in memory. Movable. Owned by one thread.
class MemoryFile : public OutputFile {
 public:
  // Creates an empty file. Error messages name it `name`.
  static StatusOr<MemoryFile> Create(std::string name);
  MemoryFile(MemoryFile&& other) noexcept;
  MemoryFile& operator=(MemoryFile&&) = delete;
  ~MemoryFile() override;

  Status Append(std::string_view bytes) override;
  Status Sync() override { return OkStatus(); }

  int descriptor() const { return fd_; }
  // Maps the whole content into memory and returns a view of it. The view is valid as long as this
  // object exists and the size of the file does not change.
  StatusOr<std::string_view> Map();
  // Returns a second handle to the file, open for reading.
  StatusOr<RandomAccessFile> Reopened() const;

 private:
  MemoryFile(std::string name, int fd) : name_(std::move(name)), fd_(fd) {}

  std::string name_;
  int fd_ = -1;
  void* memory_ = nullptr;
  size_t mapped_ = 0;
};

}  // namespace tfjob::io
