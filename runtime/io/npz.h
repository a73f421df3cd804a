// Reads and writes NumPy's archives of named arrays (.npz), as numpy.savez and
// numpy.savez_compressed write them: ZIP archives of NPY files (npy.h).
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "runtime/io/npy.h"
#include "runtime/io/zip_reader.h"

namespace tfjob::io {

// Any number of threads may read.
class NpzReader {
 public:
  // Propagates errors from ZipReader::Open.
  static StatusOr<NpzReader> Open(const std::string& path);

  // Returns the names of the arrays, sorted.
  std::vector<std::string> names() const;
  bool Has(const std::string& name) const;
  // Returns NotFound, with a message that suggests or lists names, if there is no such array.
  // Propagates errors from ReadNpyFrom. Messages name the file and the array.
  StatusOr<Tensor> Read(const std::string& name) const;
  // Returns the name of the archive's member that contains an array. Returns NotFound like Read.
  StatusOr<std::string> MemberOf(const std::string& name) const;
  const ZipReader& archive() const { return *zip_; }

 private:
  explicit NpzReader(std::unique_ptr<ZipReader> zip) : zip_(std::move(zip)) {}

  std::unique_ptr<ZipReader> zip_;
};

// Replaces the file atomically. Equal arrays yield equal files.
Status WriteNpz(const std::string& path, std::span<const std::pair<std::string, Tensor>> arrays,
                FileSystem& files = RealFileSystem());

}  // namespace tfjob::io
