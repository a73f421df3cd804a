// Writes a TensorFlow V2 checkpoint ("tensor bundle") of one shard:
//   <prefix>.data-00000-of-00001   the tensors' little-endian, row-major bytes, in the order added
//   <prefix>.index                 a LevelDB table: name → BundleEntryProto, "" → BundleHeaderProto
// Format: tensorflow/core/util/tensor_bundle; the table options are those of TensorFlow's writer,
// so equal tensors give byte-equal files.
//
// Crash-safe: both files are written under temporary names, synced, and renamed by Finish, the data
// before the index; a prefix whose index exists is whole. Not thread-safe.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>

#include "runtime/base/status.h"
#include "runtime/tensor/tensor.h"

namespace tfjob::io {

std::string DataFileName(const std::string& prefix, int shard, int shards);
std::string IndexFileName(const std::string& prefix);

class BundleWriter {
 public:
  // The folder of `prefix` must exist. Files of an unfinished writer are removed by the destructor.
  static StatusOr<std::unique_ptr<BundleWriter>> Create(std::string prefix);
  ~BundleWriter();

  // `bytes` holds the dense values. AlreadyExists for a name added before.
  Status Add(const std::string& name, DType dtype, const Shape& shape,
             std::span<const std::byte> bytes);
  Status Add(const std::string& name, const Tensor& tensor);

  Status Finish();

 private:
  explicit BundleWriter(std::string prefix);
  Status WriteIndex();

  struct DataFile;
  const std::string prefix_;
  const std::string temporary_data_;
  const std::string temporary_index_;
  std::unique_ptr<DataFile> data_;
  std::map<std::string, std::string> entries_;  // name → serialised BundleEntryProto
};

}  // namespace tfjob::io
