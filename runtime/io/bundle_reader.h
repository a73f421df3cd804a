// Reads a TensorFlow V2 checkpoint of any number of shards (see bundle_writer.h for the format).
// Checksums are verified on every read. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "runtime/base/status.h"
#include "runtime/tensor/tensor.h"

namespace tfjob::io {

// Where a tensor of the checkpoint lies.
struct BundleEntry {
  int tensorflow_dtype =
      0;  // TensorFlow's DataType number: may be one that we cannot hold (7: string)
  Shape shape;
  int shard = 0;
  int64_t offset = 0;
  int64_t size = 0;
  uint32_t masked_crc = 0;
  bool partitioned = false;
};

class BundleReader {
 public:
  // NotFound names the prefix when there is no index, and says so when `prefix` is one of the
  // checkpoint's files; DataLoss when the index is damaged or a data file is shorter than the index
  // says.
  static StatusOr<std::unique_ptr<BundleReader>> Open(std::string prefix);

  // Name → entry, sorted.
  const std::map<std::string, BundleEntry>& entries() const { return entries_; }
  bool Has(const std::string& name) const { return entries_.contains(name); }

  // NotFound lists near names; Unimplemented for strings, other element types and partitioned
  // variables; DataLoss for a wrong checksum.
  StatusOr<Tensor> Read(const std::string& name) const;

 private:
  explicit BundleReader(std::string prefix) : prefix_(std::move(prefix)) {}
  Status ReadIndex();
  Status CheckDataFiles() const;

  const std::string prefix_;
  int shards_ = 0;
  std::map<std::string, BundleEntry> entries_;
};

}  // namespace tfjob::io
