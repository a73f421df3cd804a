// Writes a TensorFlow V2 checkpoint ("tensor bundle") with one shard:
//   <prefix>.data-00000-of-00001   the tensors' little-endian, row-major bytes, in the order added
//   <prefix>.index                 a LevelDB table: name → BundleEntryProto, "" → BundleHeaderProto
// Format: tensorflow/core/util/tensor_bundle. The table options are the same as in TensorFlow's
// writer, so equal tensors produce byte-equal files.
//
// The writer is crash-safe. It writes both files under temporary names. Finish syncs and renames
// them, the data before the index, and syncs the folder after each rename. A checkpoint whose index
// exists is therefore complete, even after a power failure. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/file_system.h"
#include "runtime/base/status.h"
#include "runtime/io/write_right.h"
#include "runtime/tensor/tensor.h"

namespace tfjob::io {

class BundleEntryProto;

std::string DataFileName(const std::string& prefix, int shard, int shards);
std::string IndexFileName(const std::string& prefix);
// Returns whether the checkpoint has an index and is therefore complete. Returns an error if this
// cannot be determined, for example because the disk failed. An error does not mean that there is
// no index.
StatusOr<bool> HasIndex(const std::string& prefix);

class BundleWriter {
 public:
  // Creates the temporary files. The folder of `prefix` must exist. If Finish was not called or
  // failed, the destructor removes the files that this writer created. `files` must outlive the
  // writer.
  static StatusOr<std::unique_ptr<BundleWriter>> Create(std::string prefix,
                                                        FileSystem& files = RealFileSystem());
  ~BundleWriter();

  // Adds a tensor whose dense, row-major values are `bytes`. Returns AlreadyExists if the name was
  // added before. After any other error, the checkpoint cannot be finished.
  Status Add(const std::string& name, DType dtype, const Shape& shape,
             std::span<const std::byte> bytes);
  Status Add(const std::string& name, const Tensor& tensor);
  // Starts a tensor whose values are then passed to Append, in any number of pieces. All values
  // must be passed before the next Begin, Add or Finish. Returns the same errors as Add.
  Status Begin(const std::string& name, DType dtype, const Shape& shape);
  Status Append(std::span<const std::byte> piece);

  // Completes the checkpoint. Checks `right`, if given, after each sync, because a sync may take a
  // long time, and before each rename. If a check fails, returns its error; the data file may then
  // remain, without an index.
  Status Finish(const WriteRight& right = {});

 private:
  BundleWriter(std::string prefix, FileSystem& files);
  void EndTensor();
  Status WriteIndex();
  Status RemoveOldIndex();

  const std::string prefix_;
  FileSystem& files_;
  const std::string folder_;
  const std::string temporary_data_;
  const std::string temporary_index_;
  std::unique_ptr<OutputFile> data_;
  int64_t size_ = 0;                            // the size of the data file
  std::map<std::string, std::string> entries_;  // name → serialised BundleEntryProto
  // The tensor being written: its name, its entry, the checksum so far, and the number of bytes
  // still to be written.
  std::string name_;
  std::unique_ptr<BundleEntryProto> entry_;
  uint32_t crc_ = 0;
  int64_t missing_ = 0;
  // The files that the destructor removes.
  std::vector<std::string> unfinished_;
};

}  // namespace tfjob::io
