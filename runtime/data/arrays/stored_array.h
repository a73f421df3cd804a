// Defines arrays of examples that are kept in files, so they may be larger than memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "runtime/base/status.h"
#include "runtime/data/records/record_files.h"
#include "runtime/data/records/temporary_file.h"
#include "runtime/io/npy.h"
#include "runtime/io/random_access_file.h"
#include "runtime/tensor/tensor.h"

namespace tfjob::data {

// A file of the user that contains arrays. Any number of threads may read it.
class ArrayFile {
 public:
  static StatusOr<std::shared_ptr<const ArrayFile>> Open(const std::string& path);

  const io::RandomAccessFile& file() const { return file_; }
  const FileVersion& version() const { return version_; }
  // Returns FailedPrecondition if the file has changed since it was opened. Arrays cannot grow,
  // because the number of examples is in the header.
  Status CheckUnchanged() const;

 private:
  ArrayFile(io::RandomAccessFile file, FileVersion version)
      : file_(std::move(file)), version_(version) {}

  const io::RandomAccessFile file_;
  const FileVersion version_;
};

// Bytes in an ArrayFile or a temporary file, starting at `begin`. Copies share the file.
struct StoredBytes {
  std::shared_ptr<const ArrayFile> file;           // null if the bytes are in a temporary file
  std::shared_ptr<const TemporaryFile> temporary;  // null if the bytes are in a file of the user
  uint64_t begin = 0;

  Status Read(uint64_t offset, std::span<std::byte> bytes) const;
  Status CheckUnchanged() const { return file == nullptr ? OkStatus() : file->CheckUnchanged(); }
};

// One array. The bytes of the examples follow each other: the layout is in C order.
struct StoredArray {
  std::string name;  // of the field
  std::string from;  // the file and, in an archive, the array, for messages
  io::NpyLayout layout;
  DType dtype = DType::kFloat32;  // of the values, after conversion
  StoredBytes bytes;
  FileVersion version = {};  // of the user's file

  int64_t examples() const { return layout.shape.dim(0); }
  Shape example_shape() const;
  // Returns the size of an example in the file.
  uint64_t example_bytes() const;
};

// Writes the array to `temporary`, in C order. Needs at most about 32 MiB of memory, or that of 16
// examples. The array must be in Fortran order, and is then in C order.
Status StoreInCOrder(StoredArray& array, const std::shared_ptr<TemporaryFile>& temporary);

}  // namespace tfjob::data
