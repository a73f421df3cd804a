// Reads and writes HDF5 files, such as Keras' .h5.
//
// The HDF5 library is not safe against damaged files, so a separate program, tfjob-hdf5, calls it.
// The program runs with limits on its memory, time and output, without this process's environment,
// and without access to any other file. This process waits for the program only for a limited time.
// If the program crashes, the error names the HDF5 file. hdf5_program.h describes where the program
// must be installed.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "runtime/base/json.h"
#include "runtime/base/status.h"
#include "runtime/io/memory_file.h"
#include "runtime/io/safetensors.h"

namespace tfjob::io {

// The datasets and attributes of an HDF5 file. Any number of threads may read.
class Hdf5File {
 public:
  // Reads a whole file into memory. Returns DataLoss if it is not an HDF5 file or is damaged, and
  // FailedPrecondition if the program is missing.
  static StatusOr<std::unique_ptr<Hdf5File>> Open(const std::string& path);
  static StatusOr<std::unique_ptr<Hdf5File>> Open(RandomAccessFile file);

  ~Hdf5File();

  const std::string& name() const { return name_; }
  // The datasets of numbers, by their paths: "model_weights/dense/dense/kernel:0".
  const std::map<std::string, SafetensorsEntry>& datasets() const { return tensors_->entries(); }
  StatusOr<Tensor> Read(const std::string& path) const { return tensors_->Read(path); }
  // See SafetensorsReader::ReadPiece.
  Status ReadPiece(const std::string& path, int64_t offset, std::span<std::byte> to) const {
    return tensors_->ReadPiece(path, offset, to);
  }

  // Returns the string in an attribute of a group or dataset ("" is the root). Returns NotFound if
  // there is no such attribute.
  StatusOr<std::string> Text(const std::string& path, const std::string& attribute) const;
  // Returns the strings in an attribute that is a list. Keras splits a long list among the
  // attributes NAME0, NAME1, …
  StatusOr<std::vector<std::string>> Texts(const std::string& path,
                                           const std::string& attribute) const;
  bool HasAttribute(const std::string& path, const std::string& attribute) const;

 private:
  Hdf5File(std::string name, std::unique_ptr<SafetensorsReader> tensors, Json attributes);

  const std::string name_;
  const std::unique_ptr<SafetensorsReader> tensors_;
  const std::unique_ptr<const Json> attributes_;
};

// Returns whether the first bytes of a file are those of an HDF5 file.
bool LooksLikeHdf5(std::string_view beginning);

// Returns an HDF5 file with these datasets and attributes. Attributes have the form {"PATH":
// {"NAME": "text" or ["text", …]}}. `name` is the file's name in error messages.
StatusOr<MemoryFile> MakeHdf5(const std::string& name, const NamedTensors& datasets,
                              const Json& attributes);

}  // namespace tfjob::io
