// Reads a TensorFlow V2 checkpoint with any number of shards (see bundle_writer.h for the format).
// Verifies checksums on every read. Checkpoints are untrusted input: names, offsets and sizes are
// checked before use, and memory for a tensor is allocated only if its data file is large enough.
// Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "runtime/base/status.h"
#include "runtime/io/bundle_entry.h"
#include "runtime/io/stored_tensor.h"
#include "runtime/tensor/tensor.h"

namespace tfjob {
class ThreadPool;
}  // namespace tfjob

namespace tfjob::io {

class DataFile;

class BundleReader {
 public:
  // Returns NotFound, with a message that names the prefix, if the index is missing; if `prefix` is
  // a folder or one of the checkpoint's files, the message says what prefix to pass instead.
  // Returns DataLoss if the index is damaged, if a data file is missing or shorter than the index
  // requires, or if the slices of a partitioned variable overlap, are incomplete or do not fit its
  // shape. Returns Unimplemented if the checkpoint is big-endian, if its index is compressed, or if
  // a variable has more than 4096 slices.
  static StatusOr<std::unique_ptr<BundleReader>> Open(std::string prefix);

  // Returns the entries, sorted by name.
  const std::map<std::string, BundleEntry>& entries() const { return entries_; }
  bool Has(const std::string& name) const { return entries_.contains(name); }

  // Returns NotFound, with a message that names the tensor, if there is no such tensor;
  // Unimplemented for strings and other unsupported element types; and DataLoss for a wrong
  // checksum. Assembles a partitioned variable from its slices.
  StatusOr<Tensor> Read(const std::string& name) const;
  // Like Read, but reads into the memory of `to`, and also uses the threads of `pool` unless it is
  // null. Returns InvalidArgument if the dtype or shape of `to` differs from the tensor's. After an
  // error, the content of `to` is undefined.
  Status ReadInto(const std::string& name, Tensor to, ThreadPool* pool = nullptr) const;
  // Verifies the tensor's checksum piece by piece, and returns the tensor without loading all of it
  // into memory. Returns the same errors as Read.
  StatusOr<StoredTensor> Store(const std::string& name) const;
  // Returns the value of a tensor that is a single string of at most 64 MiB. Returns the same
  // errors as Read.
  StatusOr<std::string> ReadString(const std::string& name) const;

 private:
  explicit BundleReader(std::string prefix) : prefix_(std::move(prefix)) {}
  StatusOr<const BundleEntry*> Find(const std::string& name) const;
  Status ReadIndex();
  StatusOr<int64_t> DataFileSize(int shard) const;
  Status CheckDataFiles() const;
  Status CheckLocation(const std::string& what, const BundleLocation& location,
                       std::map<int, int64_t>& sizes) const;
  StatusOr<std::shared_ptr<const DataFile>> OpenShard(int shard) const;
  // Returns the tensor's entry and dtype, or Read's error if the tensor cannot be read.
  StatusOr<std::pair<const BundleEntry*, DType>> FindTensor(const std::string& name) const;
  Status ReadSlice(const std::string& name, const BundleSlice& slice, Tensor& to,
                   ThreadPool* pool) const;
  Status WrongChecksum(const std::string& what) const;

  const std::string prefix_;
  int shards_ = 0;
  std::map<std::string, BundleEntry> entries_;
};

}  // namespace tfjob::io
