#include "runtime/data/table_source.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_join.h"
#include "runtime/base/fnv1a.h"
#include "runtime/data/column_rows.h"
#include "runtime/data/dataset.h"
#include "runtime/io/crc32c.h"

namespace tfjob::data {
namespace {

class TableReader : public RowReader {
 public:
  explicit TableReader(std::vector<ColumnValues> columns) : columns_(std::move(columns)) {}

  Status Read(std::span<const int64_t> rows, std::span<NamedTensor> tensors) override {
    for (size_t i = 0; i < columns_.size(); ++i) CopyRows(columns_[i], rows, tensors[i].value);
    return OkStatus();
  }
  Status ReadAt(std::span<const int64_t> rows, std::span<const int64_t> places,
                std::span<NamedTensor> tensors) override {
    for (size_t i = 0; i < columns_.size(); ++i)
      CopyRowsTo(places, columns_[i], rows, tensors[i].value);
    return OkStatus();
  }

 private:
  const std::vector<ColumnValues> columns_;
};

class Table : public Source {
 public:
  Table(std::shared_ptr<const Dataset> dataset, uint64_t fingerprint)
      : dataset_(std::move(dataset)), fingerprint_(fingerprint) {
    for (const Array& array : dataset_->arrays)
      fields_.push_back({array.name, array.file, array.values.dtype(), array.example_shape()});
  }

  int64_t size() const override { return dataset_->size(); }
  const std::vector<Field>& fields() const override { return fields_; }
  bool in_memory() const override { return true; }
  int64_t rows_in_memory() const override { return size(); }
  std::string Describe() const override {
    std::vector<std::string> files;
    size_t bytes = 0;
    for (const Array& array : dataset_->arrays) {
      bytes += array.values.num_bytes();
      if (std::ranges::find(files, array.file) == files.end()) files.push_back(array.file);
    }
    return StrCat(absl::StrJoin(files, ", "), "; ", bytes, " bytes in memory");
  }
  uint64_t fingerprint() const override { return fingerprint_; }
  std::optional<uint64_t> values_hash() const override {
    Fnv1a hash;
    for (const Array& array : dataset_->arrays) {
      hash.Add(StrCat(array.name, " ", Name(array.values.dtype()), " ",
                      array.values.shape().ToString(), "\n"));
      hash.AddWord(io::Crc32c(array.values.bytes()));
    }
    return hash.hash();
  }

  StatusOr<std::unique_ptr<RowReader>> Open(const std::vector<Column>& columns) const override {
    std::vector<ColumnValues> values;
    for (const Column& column : columns) {
      ASSIGN_OR_RETURN(values.emplace_back(), ReadColumn(*dataset_, column));
    }
    return std::make_unique<TableReader>(std::move(values));
  }

 private:
  const std::shared_ptr<const Dataset> dataset_;
  const uint64_t fingerprint_;
  std::vector<Field> fields_;
};

}  // namespace

std::shared_ptr<const Source> TableSource(std::shared_ptr<const Dataset> dataset,
                                          uint64_t fingerprint) {
  return std::make_shared<const Table>(std::move(dataset), fingerprint);
}

}  // namespace tfjob::data
