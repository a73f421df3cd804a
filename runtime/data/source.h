// Defines sources, from which pipelines read their examples: for example, a table in memory
// (table_source.h), or files that are read while the pipeline runs (tfrecord/tfrecord.h). A source
// numbers its examples from 0 and can read any of them at any time, so only the pipeline determines
// their order.
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
  std::string file;  // the file of the values, for error messages
  DType dtype = DType::kFloat32;
  Shape shape;  // of one example
  // If set, sequences that are shorter than the first axis are padded with this value. NaN if
  // different examples have different padding.
  std::optional<double> padding = {};
};

// Reads the examples of a source. Owned by one thread.
class RowReader {
 public:
  RowReader();
  virtual ~RowReader();
  // Starts an epoch; epochs count from 0. Values depend on the epoch only if a source changes them
  // at random (operators/mask_tokens.h). Operators on top of such a source need not forward this
  // call.
  virtual void BeginEpoch(int64_t /*epoch*/) {}
  // Fills the tensors, one per column, with the examples `rows`, in this order. Every tensor has
  // the type and the shape of its column, for rows.size() examples.
  virtual Status Read(std::span<const int64_t> rows, std::span<NamedTensor> tensors) = 0;
  // Reads example rows[i] into row places[i] of every tensor, and leaves the other rows unchanged.
  // The two spans have the same size. The default implementation reads into its own buffer, and
  // copies the rows from there. It reallocates the buffer for a larger batch or more rows, and
  // creates tensors in the buffer for each new number of rows. Readers of in-memory sources write
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
  // Returns whether the values of all examples are in memory.
  virtual bool in_memory() const = 0;
  // Returns size() if every example is stored separately in memory; a list of indices is then small
  // in comparison. Also returns size() if the source is not in memory, but must be shuffled as if
  // it were (storage.h). Returns 0 if the list might not be small, for example because the source
  // repeats the examples of another source.
  virtual int64_t rows_in_memory() const { return 0; }
  // Returns the number of the first example of each file, in ascending order, beginning with 0, if
  // the examples of each file follow each other. Returns nothing if they do not, or if there are no
  // files.
  virtual std::vector<int64_t> file_starts() const { return {}; }
  // Returns whether examples can be read in any order at about the same cost. If not, they are
  // cheap to read only in the order of their numbers, and pipelines refuse to shuffle them.
  virtual bool random_access() const { return true; }
  // Returns a description for users: where the examples are, and how many bytes they need.
  virtual std::string Describe() const = 0;
  // Describes the damage that made the source leave out examples. Returns "" if there is none.
  virtual std::string LeftOut() const { return {}; }
  // Returns a hash that tasks use to detect that they read different data. The hash covers the
  // records, their order, and how they are read. For images in folders, it covers only the names
  // and sizes of the files. For tables in memory, it is the `fingerprint` that was passed to
  // TableSource. If the result is 0, tasks should not compare this source.
  virtual uint64_t fingerprint() const { return 0; }
  // Returns a hash that later runs use to recognise values that were kept in a file
  // (operators/cache_file.h). Unlike the fingerprint, this hash covers the values of tables.
  // Returns nullopt if functions of the program compute the values, because changes to the
  // functions cannot be detected. By default, returns the fingerprint, or nullopt if that is 0.
  virtual std::optional<uint64_t> values_hash() const;
  // Returns the examples by length if each batch must contain examples of a single bucket
  // (operators/bucket_by_length.h), and null otherwise.
  virtual const Buckets* buckets() const { return nullptr; }
  // Returns a reader that fills tensors for `columns`. Propagates errors from ConvertColumn
  // (column.h). A source in memory checks every value in this call; its readers never fail and
  // allocate nothing. All other readers check the values when they read them. The source must
  // outlive the reader.
  virtual StatusOr<std::unique_ptr<RowReader>> Open(const std::vector<Column>& columns) const = 0;

  // Returns null if there is no such field.
  const Field* Find(std::string_view name) const;
};

}  // namespace tfjob::data
