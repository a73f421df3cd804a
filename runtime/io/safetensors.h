// Reads and writes files in the safetensors format (huggingface.co/docs/safetensors):
//   8 bytes   n, the size of the header, little-endian
//   n bytes   the header, JSON: {"NAME": {"dtype": "F32", "shape": [2, 3],
//             "data_offsets": [0, 24]}, …, "__metadata__": {"key": "value"}}
//   the rest  the values, little-endian and row-major, without gaps
//
// Files are untrusted input: names, offsets and sizes are checked before use, and at most a small
// multiple of the file's size is allocated.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/file_system.h"
#include "runtime/base/status.h"
#include "runtime/io/random_access_file.h"
#include "runtime/tensor/tensor.h"

namespace tfjob::io {

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

// The type, shape and location of a tensor in the file.
struct SafetensorsEntry {
  std::string stored;  // the file's type: "F32", "BF16"
  // The type of the tensor that Read returns. F16 and BF16 become float32, which represents their
  // values exactly. It is nullopt for a type that Read does not support (I8, U16, F8_E4M3, …).
  std::optional<DType> dtype;
  Shape shape;
  uint64_t offset = 0;  // in the file
  uint64_t size = 0;    // in bytes
};

// The largest header that is accepted. It suffices for about 100,000 tensors.
inline constexpr uint64_t kMaxSafetensorsHeader = 16 << 20;

// Any number of threads may read.
class SafetensorsReader {
 public:
  // Returns DataLoss if the file is not in this format or is truncated, or if its tensors overlap,
  // leave gaps or do not have the size that their shape requires.
  static StatusOr<std::unique_ptr<SafetensorsReader>> Open(const std::string& path);
  static StatusOr<std::unique_ptr<SafetensorsReader>> Open(RandomAccessFile file);

  const std::map<std::string, SafetensorsEntry>& entries() const { return entries_; }
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

  // Returns NotFound, with a message that names the tensor, if there is no such tensor, and
  // Unimplemented if its type is not supported.
  StatusOr<Tensor> Read(const std::string& name) const;
  // Fills `to` with bytes of the tensor that Read(name) returns, starting at byte `offset`, which
  // must be a multiple of the element size, like the size of `to`. Returns the same errors as Read,
  // and InvalidArgument if the range is outside the tensor.
  Status ReadPiece(const std::string& name, int64_t offset, std::span<std::byte> to) const;

 private:
  // Returns the entry of a tensor whose type is supported, or Read's error.
  StatusOr<const SafetensorsEntry*> Find(const std::string& name) const;
  explicit SafetensorsReader(RandomAccessFile file) : file_(std::move(file)) {}
  Status ReadHeader();
  Status CheckCovers(uint64_t begin) const;

  const RandomAccessFile file_;
  std::map<std::string, SafetensorsEntry> entries_;
  std::map<std::string, std::string> metadata_;
};

// Returns whether the first bytes of a file look like this format: a plausible header size, then
// "{".
bool LooksLikeSafetensors(std::string_view beginning);

// Writes a file that the Python package safetensors can read. Replaces `path` atomically. Returns
// InvalidArgument if two tensors have the same name.
Status WriteSafetensors(const std::string& path, const NamedTensors& tensors,
                        const std::map<std::string, std::string>& metadata = {},
                        FileSystem& files = RealFileSystem());
// Returns the start of a file with these tensors, up to the first value: the size of the header and
// the header itself.
StatusOr<std::string> SafetensorsHeader(const NamedTensors& tensors,
                                        const std::map<std::string, std::string>& metadata);

}  // namespace tfjob::io
