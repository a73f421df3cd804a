// Writes a TensorFlow V2 checkpoint ("tensor bundle") with one shard:
//   <prefix>.data-00000-of-00001   the tensors' little-endian, row-major bytes, in the order added
//   <prefix>.index                 a LevelDB table: name → BundleEntryProto, "" → BundleHeaderProto
// Format: tensorflow/core/util/tensor_bundle. The table options are those of TensorFlow's writer,
// so equal tensors produce byte-equal files.
//
// The writer is crash-safe: both files are written under temporary names, and Finish syncs and
// renames them, the data before the index. If the index exists, the checkpoint is therefore
// complete. Not thread-safe.
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
  // The folder of `prefix` must exist. If Finish was not called or failed, the destructor removes
  // the temporary files.
  static StatusOr<std::unique_ptr<BundleWriter>> Create(std::string prefix);
  ~BundleWriter();

  // `bytes` contains the dense values. Returns AlreadyExists if the name was added before.
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
