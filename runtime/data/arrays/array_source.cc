#include "runtime/data/arrays/array_source.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_join.h"
#include "runtime/base/check.h"
#include "runtime/base/fnv1a.h"
#include "runtime/data/column_rows.h"
#include "runtime/data/row_memory.h"
#include "runtime/data/staged_rows.h"
#include "runtime/data/storage.h"

namespace tfjob::data {
namespace {

class Arrays : public Source {
 public:
  explicit Arrays(std::vector<StoredArray> arrays) : arrays_(std::move(arrays)) {
    for (const StoredArray& array : arrays_)
      fields_.push_back({array.name, array.from, array.dtype, array.example_shape()});
  }

  int64_t size() const override { return arrays_[0].examples(); }
  const std::vector<Field>& fields() const override { return fields_; }
  bool in_memory() const override { return false; }
  int64_t rows_in_memory() const override { return size() <= kMostListedOnDisk ? size() : 0; }
  std::string Describe() const override;
  std::optional<uint64_t> values_hash() const override;
  StatusOr<std::unique_ptr<RowReader>> Open(const std::vector<Column>& columns) const override;

  const std::vector<StoredArray>& arrays() const { return arrays_; }

 private:
  const std::vector<StoredArray> arrays_;
  std::vector<Field> fields_;
};

std::string Arrays::Describe() const {
  std::vector<std::string> files;
  uint64_t bytes = 0, stored = 0;
  for (const StoredArray& array : arrays_) {
    const auto size = static_cast<uint64_t>(array.examples()) * array.example_bytes();
    (array.bytes.file != nullptr ? bytes : stored) += size;
    if (std::ranges::find(files, array.from) == files.end()) files.push_back(array.from);
  }
  std::string text = absl::StrJoin(files, ", ");
  if (bytes > 0) text += StrCat("; ", bytes, " bytes, read when a batch needs them");
  if (stored > 0) text += StrCat("; ", stored, " bytes unpacked into a temporary file");
  return text;
}

// The content of the files is not read to compute a hash, because they may be large.
std::optional<uint64_t> Arrays::values_hash() const {
  Fnv1a hash;
  for (const StoredArray& array : arrays_) {
    hash.Add(StrCat(array.name, " from ", array.from, " ", Name(array.dtype), " ",
                    array.layout.shape.ToString(), "\n"));
    hash.AddWord(array.version.size);
    hash.AddWord(static_cast<uint64_t>(array.version.modified));
  }
  return hash.hash();
}

// Reads the bytes of several examples one after another.
class ExampleBytes {
 public:
  ExampleBytes(const StoredArray& array, std::span<const int64_t> rows)
      : array_(array), rows_(rows), each_(array.example_bytes()) {}

  // Fills `bytes` with the next bytes of the examples. Reads consecutive examples at once.
  Status Read(std::span<std::byte> bytes) {
    while (!bytes.empty()) {
      const uint64_t first = at_ / each_, within = at_ % each_;
      uint64_t last = first + 1;
      while (last < rows_.size() && rows_[last] == rows_[last - 1] + 1) ++last;
      const uint64_t size = std::min<uint64_t>(bytes.size(), (last - first) * each_ - within);
      RETURN_IF_ERROR(array_.bytes.Read(static_cast<uint64_t>(rows_[first]) * each_ + within,
                                        bytes.first(size)));
      at_ += size;
      bytes = bytes.subspan(size);
    }
    return OkStatus();
  }

 private:
  const StoredArray& array_;
  const std::span<const int64_t> rows_;
  const uint64_t each_;
  uint64_t at_ = 0;
};

std::string PlaceOf(const StoredArray& array, int64_t row) {
  return StrCat(array.from, ": row ", row);
}

// Reads the examples `rows` of an array.
Status ReadValues(const StoredArray& array, std::span<const int64_t> rows, Tensor& values) {
  ExampleBytes bytes(array, rows);
  if (!io::NeedsConversion(array.layout)) return bytes.Read(values.bytes());
  const Status converted = io::ReadNpyElements(
      array.from, array.layout, [&](std::span<std::byte> to) { return bytes.Read(to); }, values);
  if (converted.ok()) return converted;
  // Find the row of the value that cannot be converted.
  Tensor one = RowMemory(array.dtype, array.example_shape(), 1).First(1);
  for (size_t i = 0; i < rows.size(); ++i) {
    ExampleBytes row(array, rows.subspan(i, 1));
    RETURN_IF_ERROR(io::ReadNpyElements(
        PlaceOf(array, rows[i]), array.layout,
        [&](std::span<std::byte> to) { return row.Read(to); }, one));
  }
  return converted;
}

class ArrayReader : public RowReader {
 public:
  ArrayReader(const Arrays& source, std::vector<Column> columns)
      : source_(source), columns_(std::move(columns)), rows_(source.fields()) {
    for (const Column& column : columns_)
      needed_.push_back(static_cast<size_t>(source.Find(column.array) - source.fields().data()));
  }

  Status Read(std::span<const int64_t> rows, std::span<NamedTensor> tensors) override {
    Dataset& dataset = rows_.For(rows.size());
    Status read = ReadArrays(rows, dataset);
    // Check for changes first, because a changed file explains why its values appear to be damaged.
    for (const StoredArray& array : source_.arrays()) RETURN_IF_ERROR(array.bytes.CheckUnchanged());
    RETURN_IF_ERROR(read);
    for (size_t i = 0; i < columns_.size(); ++i) {
      const StoredArray& array = source_.arrays()[needed_[i]];
      dataset.place = [&array, rows](int64_t index) {
        return PlaceOf(array, rows[static_cast<size_t>(index)]);
      };
      ASSIGN_OR_RETURN(const ColumnValues values, ReadColumn(dataset, columns_[i]));
      CopyRows(values, rows_.numbers(rows.size()), tensors[i].value);
    }
    return OkStatus();
  }

 private:
  // Reads the arrays that the columns need, each once.
  Status ReadArrays(std::span<const int64_t> rows, Dataset& dataset) const {
    for (size_t i = 0; i < source_.arrays().size(); ++i) {
      if (std::ranges::find(needed_, i) == needed_.end()) continue;
      RETURN_IF_ERROR(ReadValues(source_.arrays()[i], rows, dataset.arrays[i].values));
    }
    return OkStatus();
  }

  const Arrays& source_;
  const std::vector<Column> columns_;
  std::vector<size_t> needed_;  // for each column, the index of its array
  StagedRows rows_;
};

StatusOr<std::unique_ptr<RowReader>> Arrays::Open(const std::vector<Column>& columns) const {
  for (const Column& column : columns) {
    if (Find(column.array) != nullptr) continue;
    return InvalidArgument(fields_[0].file, ": the data has no array ", column.array, ", which ",
                           column.name, " needs");
  }
  return std::make_unique<ArrayReader>(*this, columns);
}

}  // namespace

std::shared_ptr<const Source> ArraySource(std::vector<StoredArray> arrays) {
  ENFORCE(!arrays.empty(), "a source has at least one field");
  return std::make_shared<const Arrays>(std::move(arrays));
}

}  // namespace tfjob::data
