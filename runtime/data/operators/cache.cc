#include "runtime/data/operators/cache.h"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <utility>

#include "runtime/base/env.h"
#include "runtime/base/fnv1a.h"
#include "runtime/data/dataset.h"
#include "runtime/data/table_source.h"

namespace tfjob::data {
namespace {

constexpr int64_t kRowsPerRead = 256;

size_t BytesPerExample(const Source& source) {
  size_t bytes = 0;
  for (const Field& field : source.fields())
    bytes += static_cast<size_t>(field.shape.num_elements()) * SizeOf(field.dtype);
  return bytes;
}

// Adds the size of a cache to the total size of all caches in the process, as long as this object
// exists.
class CountedBytes {
 public:
  explicit CountedBytes(size_t bytes) : bytes_(bytes), total_(all_ += bytes) {}
  ~CountedBytes() { all_ -= bytes_; }
  CountedBytes(const CountedBytes&) = delete;
  CountedBytes& operator=(const CountedBytes&) = delete;

  // Returns the total size of the other caches at the time when this cache was added.
  size_t others() const { return total_ - bytes_; }

 private:
  static inline std::atomic<size_t> all_ = 0;
  const size_t bytes_;
  const size_t total_;
};

// Counts the bytes of a cache of the source. Returns InvalidArgument if all caches together have
// too many bytes.
StatusOr<std::shared_ptr<const CountedBytes>> Count(const Source& source,
                                                    const CacheOptions& options) {
  const size_t most =
      options.most_bytes > 0 ? options.most_bytes : static_cast<size_t>(AvailableMemory()) / 4 * 3;
  const size_t each = std::max<size_t>(BytesPerExample(source), 1);
  if (static_cast<size_t>(source.size()) > most / each) {
    return InvalidArgument("cache: ", source.size(), " examples of ", each,
                           " bytes need more memory than the ", most, " bytes that the cache may ",
                           "take; take fewer examples, or do not cache them");
  }
  const size_t bytes = static_cast<size_t>(source.size()) * each;
  auto counted = std::make_shared<const CountedBytes>(bytes);
  if (counted->others() <= most - bytes) return counted;
  return InvalidArgument("cache: ", source.size(), " examples of ", each, " bytes and the ",
                         counted->others(), " bytes of other caches need more memory than the ",
                         most, " bytes that all caches may take; take fewer examples, or do not ",
                         "cache all datasets");
}

Tensor RowsOf(const Field& field, int64_t rows) {
  std::vector<int64_t> dims = field.shape.dims();
  dims.insert(dims.begin(), rows);
  return Tensor(field.dtype, Shape(std::move(dims)));
}

// Reads the examples [begin, end) into the arrays.
Status ReadRows(RowReader& reader, int64_t begin, int64_t end, std::vector<NamedTensor>& rows,
                Dataset& dataset) {
  std::vector<int64_t> numbers(static_cast<size_t>(end - begin));
  std::iota(numbers.begin(), numbers.end(), begin);
  RETURN_IF_ERROR(reader.Read(numbers, rows));
  for (size_t i = 0; i < rows.size(); ++i) {
    const std::span<const std::byte> from = std::as_const(rows[i].value).bytes();
    const size_t bytes = from.size() / numbers.size();
    std::ranges::copy(
        from, dataset.arrays[i].values.bytes().begin() + begin * static_cast<int64_t>(bytes));
  }
  return OkStatus();
}

// Reads a table, but has the description and the fingerprint of the source that was copied.
class Cached : public Source {
 public:
  Cached(SourcePtr source, SourcePtr table, std::shared_ptr<const CountedBytes> bytes)
      : source_(std::move(source)), table_(std::move(table)), bytes_(std::move(bytes)) {}

  int64_t size() const override { return table_->size(); }
  const std::vector<Field>& fields() const override { return source_->fields(); }
  bool in_memory() const override { return true; }
  std::vector<int64_t> file_starts() const override { return source_->file_starts(); }
  int64_t rows_in_memory() const override { return size(); }
  std::string Describe() const override {
    return StrCat(source_->Describe(),
                  "; cached: ", BytesPerExample(*table_) * static_cast<size_t>(size()),
                  " bytes in memory");
  }
  std::string LeftOut() const override { return source_->LeftOut(); }
  uint64_t fingerprint() const override { return source_->fingerprint(); }
  std::optional<uint64_t> values_hash() const override { return source_->values_hash(); }
  StatusOr<std::unique_ptr<RowReader>> Open(const std::vector<Column>& columns) const override {
    return table_->Open(columns);
  }

 private:
  const SourcePtr source_;
  const SourcePtr table_;
  const std::shared_ptr<const CountedBytes> bytes_;
};

}  // namespace

StatusOr<SourcePtr> Cache(SourcePtr source, const CacheOptions& options) {
  if (source->in_memory()) return source;
  ASSIGN_OR_RETURN(std::shared_ptr<const CountedBytes> bytes, Count(*source, options));
  ASSIGN_OR_RETURN(const std::unique_ptr<RowReader> reader, source->Open(ColumnsOfFields(*source)));
  auto dataset = std::make_shared<Dataset>();
  dataset->place = [](int64_t row) { return StrCat("example ", row, " of the cached examples"); };
  for (const Field& field : source->fields())
    dataset->arrays.push_back({field.name, field.file, RowsOf(field, source->size())});
  for (int64_t begin = 0; begin < source->size(); begin += kRowsPerRead) {
    const int64_t end = std::min(begin + kRowsPerRead, source->size());
    std::vector<NamedTensor> rows;
    for (const Field& field : source->fields())
      rows.push_back({field.name, RowsOf(field, end - begin)});
    RETURN_IF_ERROR(ReadRows(*reader, begin, end, rows, *dataset));
  }
  SourcePtr table = TableSource(std::move(dataset));
  return std::make_shared<const Cached>(std::move(source), std::move(table), std::move(bytes));
}

}  // namespace tfjob::data
