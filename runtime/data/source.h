// Defines where the examples of a pipeline come from, for example from a table in memory
// (table_source.h), or from files that are read while the pipeline runs (tfrecord/tfrecord.h). A
// source numbers its examples from 0 and can read any of them at any time, so only the pipeline
// decides their order.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/data/column.h"
#include "runtime/tensor/tensor.h"

namespace tfjob::data {

class Buckets;

struct NamedTensor {
  std::string name;
  Tensor value;  // [b, …]
};

// Describes one of the values that every example has.
struct Field {
  std::string name;
  std::string file;  // where the values come from, for error messages
  DType dtype = DType::kFloat32;
  Shape shape;  // of one example
  // If set, sequences that are shorter than the first axis are followed by this value. NaN if
  // different examples have different ones.
  std::optional<double> padding = {};
};

// Reads the examples of a source. Owned by one thread.
class RowReader {
 public:
  RowReader();
  virtual ~RowReader();
  // Begins an epoch; epochs count from 0. Only the values of sources that change them at random
  // (operators/mask_tokens.h) depend on the epoch. Operators on top of such a source need not
  // forward this call.
  virtual void BeginEpoch(int64_t /*epoch*/) {}
  // Fills the tensors, one per column, with the examples `rows`, in this order. Every tensor has
  // the type and the shape of its column, for rows.size() examples.
  virtual Status Read(std::span<const int64_t> rows, std::span<NamedTensor> tensors) = 0;
  // Reads example rows[i] into row places[i] of every tensor, and leaves the other rows unchanged.
  // The two spans have the same size. The default implementation reads into a buffer of its own and
  // copies from there. It reallocates the buffer when a larger batch (or more rows) arrives, and
  // makes tensors over it when a number of rows first occurs. Readers of in-memory sources write
  // directly, and allocate nothing.
  virtual Status ReadAt(std::span<const int64_t> rows, std::span<const int64_t> places,
                        std::span<NamedTensor> tensors);

 private:
  class ScatterBuffer;
  std::unique_ptr<ScatterBuffer> scatter_buffer_;  // null until ReadAt needs it
};

// Provides numbered examples. Immutable. Shared by the pipelines that read it.
class Source {
 public:
  virtual ~Source() = default;
  virtual int64_t size() const = 0;                      // the number of examples
  virtual const std::vector<Field>& fields() const = 0;  // at least one
  // Returns whether the values of the examples are in memory.
  virtual bool in_memory() const = 0;
  // Returns size() if every example is stored in memory separately, so that a list of indices is
  // small in comparison. Returns 0 if it may not be, for example because the source repeats the
  // examples of another source.
  virtual int64_t rows_in_memory() const { return 0; }
  // Returns whether examples can be read in any order at about the same cost. If not, they are
  // cheap to read only in their own order, and pipelines refuse to shuffle them.
  virtual bool random_access() const { return true; }
  // Describes, for users, where the examples are and how many bytes they take.
  virtual std::string Describe() const = 0;
  // Describes the damage that made the source leave out examples. Returns "" if there is none.
  virtual std::string LeftOut() const { return {}; }
  // Returns a hash with which tasks detect that they read different data. It covers the records,
  // their order, and how they are read. It covers only the names and sizes of images in folders,
  // and not the contents of tables in memory, unless TableSource is given a fingerprint. A result
  // of 0 means that tasks should not compare this source.
  virtual uint64_t fingerprint() const { return 0; }
  // Returns a hash with which values of the examples that were kept in a file are recognised in
  // later runs (operators/cache_file.h). Unlike the fingerprint, it covers the values of tables.
  // Returns nullopt if functions of the program compute the values, because their changes cannot be
  // noticed. By default, returns the fingerprint, or nullopt if that is 0.
  virtual std::optional<uint64_t> values_hash() const;
  // Returns the examples by length if each batch of a pipeline is to have examples of a single
  // bucket (operators/bucket_by_length.h), and null otherwise.
  virtual const Buckets* buckets() const { return nullptr; }
  // Returns a reader that fills tensors for `columns`. Propagates errors from ConvertColumn
  // (column.h). A source in memory checks every value now; its readers never fail and allocate
  // nothing. Other readers check the values that they read. The source must outlive the reader.
  virtual StatusOr<std::unique_ptr<RowReader>> Open(const std::vector<Column>& columns) const = 0;

  // Returns null if there is no such field.
  const Field* Find(std::string_view name) const;
};

}  // namespace tfjob::data
