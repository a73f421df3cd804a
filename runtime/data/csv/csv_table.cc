#include "runtime/data/csv/csv_table.h"

#include <absl/strings/str_join.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/base/fnv1a.h"
#include "runtime/data/byte_source.h"
#include "runtime/data/csv/csv_format.h"
#include "runtime/data/csv/csv_records.h"
#include "runtime/data/dataset.h"
#include "runtime/data/table_source.h"

namespace tfjob::data {
namespace {

using Fields = CsvColumns::Fields;

// ---- in memory

// Collects the features of all records.
class Table {
 public:
  explicit Table(const CsvTableOptions& options) : options_(options) {
    for (const CsvFeature& feature : options.features) columns_.emplace_back(feature);
  }

  Status Find(const Fields& header) {
    width_ = header.size();
    for (CsvColumns& column : columns_) RETURN_IF_ERROR(column.Find(header));
    return OkStatus();
  }

  // Returns whether the values of `records` records take at most `most` bytes.
  bool Fits(int64_t records, uint64_t most) const {
    uint64_t each = 0;
    for (const CsvColumns& column : columns_) each += column.bytes();
    return static_cast<uint64_t>(records) <= most / std::max<uint64_t>(each, 1);
  }

  // Allocates memory for `records` calls of Add.
  void Begin(int64_t records) {
    for (const CsvColumns& column : columns_) {
      std::vector<int64_t> dims = column.feature().shape.dims();
      dims.insert(dims.begin(), records);
      values_.emplace_back(column.feature().dtype, Shape(std::move(dims)));
    }
    lines_.reserve(static_cast<size_t>(records));
  }

  Status Add(const Fields& record, int64_t line) {
    RETURN_IF_ERROR(CheckWidth(record, width_));
    for (size_t i = 0; i < columns_.size(); ++i) {
      const size_t bytes = columns_[i].bytes();
      RETURN_IF_ERROR(
          columns_[i].Store(record, values_[i].bytes().subspan(lines_.size() * bytes, bytes)));
    }
    lines_.push_back(line);
    return OkStatus();
  }

  static Status CheckWidth(const Fields& record, size_t width) {
    if (record.size() == width) return OkStatus();
    return InvalidArgument("expected ", width, " fields, got ", record.size());
  }

  Dataset Finish() {
    std::map<std::string, Tensor> values;
    for (size_t i = 0; i < columns_.size(); ++i)
      values.emplace(columns_[i].feature().name, values_[i]);
    Dataset dataset;
    for (const RecordOptions::Value& field : options_.fields) {
      dataset.arrays.push_back({field.name, StrCat(options_.file, ": feature ", field.feature),
                                values.at(field.feature)});
    }
    dataset.place = [file = options_.file, lines = std::move(lines_)](int64_t index) {
      return StrCat(file, ": line ", lines[static_cast<size_t>(index)]);
    };
    return dataset;
  }

 private:
  const CsvTableOptions& options_;
  std::vector<CsvColumns> columns_;
  std::vector<Tensor> values_;  // of each feature, for all records
  size_t width_ = 0;            // fields per record
  std::vector<int64_t> lines_;  // the line in which each record begins
};

// Returns the number of records that have not been read yet. Takes a copy of the reader, so the
// caller can still read the records.
StatusOr<int64_t> CountRecords(CsvRecords records) {
  for (int64_t count = 0;; ++count) {
    ASSIGN_OR_RETURN(const bool more, records.Next());
    if (!more) return count;
  }
}

// Reads the header, and looks up the columns.
template <typename Columns>
Status FindColumns(CsvRecords& records, Columns& columns) {
  ASSIGN_OR_RETURN(const bool header, records.Next());
  if (!header) return InvalidArgument("the file is empty; expected the names of columns");
  return Annotate(columns.Find(records.fields()), StrCat("line ", records.line()));
}

// Reads the table from the text of the file. Returns nullopt if the values are too large for
// memory. The errors do not name the file.
StatusOr<std::optional<Dataset>> ReadTable(const CsvTableOptions& options, std::string_view text) {
  CsvRecords records(text, options.delimiter);
  Table table(options);
  RETURN_IF_ERROR(FindColumns(records, table));
  ASSIGN_OR_RETURN(const int64_t count, CountRecords(records));
  if (count == 0)
    return InvalidArgument("the file has no records after its header; expected at least one");
  if (!table.Fits(count, options.storage.most_in_memory)) return std::nullopt;
  table.Begin(count);
  while (true) {
    ASSIGN_OR_RETURN(const bool more, records.Next());
    if (!more) return table.Finish();
    const Status added = table.Add(records.fields(), records.line());
    if (!added.ok()) return Annotate(added, StrCat("line ", records.line()));
  }
}

// Returns a hash of all values. The values include ids, so two tasks have the same hash only if
// their vocabularies are equal, too.
uint64_t HashOf(const Dataset& dataset) {
  Fnv1a hash;
  for (const Array& array : dataset.arrays) {
    hash.Add(StrCat(array.name, array.values.shape().ToString()));
    const std::span<const std::byte> bytes = array.values.bytes();
    size_t i = 0;
    for (uint64_t word; i + sizeof(word) <= bytes.size(); i += sizeof(word)) {
      std::memcpy(&word, &bytes[i], sizeof(word));
      hash.AddWord(word);
    }
    for (; i < bytes.size(); ++i) hash.AddWord(std::to_integer<uint64_t>(bytes[i]));
  }
  return hash.hash();
}

// Returns null if the table is too large for memory.
StatusOr<std::shared_ptr<const Source>> LoadTable(const CsvTableOptions& options) {
  ASSIGN_OR_RETURN(const bool larger, UnpacksToMore(options.file, options.storage.most_in_memory));
  if (larger) return nullptr;
  ASSIGN_OR_RETURN(ByteSource source, ByteSource::Open(options.file));
  ASSIGN_OR_RETURN(const std::string text, source.ReadText());
  ASSIGN_OR_RETURN(std::optional<Dataset> dataset, ReadTable(options, text));
  if (!dataset) return nullptr;
  const uint64_t fingerprint = HashOf(*dataset);
  return TableSource(std::make_shared<const Dataset>(*std::move(dataset)), fingerprint);
}

// ---- on disk

class TableParser : public RecordParser {
 public:
  TableParser(const std::vector<CsvFeature>& features, const Fields& header, char delimiter)
      : records_(delimiter), width_(header.size()) {
    for (const CsvFeature& feature : features) {
      columns_.emplace_back(feature);
      ENFORCE(columns_.back().Find(header).ok(), "OpenCsvTable has found the columns");
    }
  }

  Status Parse(std::string_view record, ExampleRow& row) override {
    RETURN_IF_ERROR(records_.Split(record));
    RETURN_IF_ERROR(Table::CheckWidth(records_.fields(), width_));
    for (size_t i = 0; i < columns_.size(); ++i) {
      ASSIGN_OR_RETURN(const std::span<std::byte> value, row.Take(i));
      RETURN_IF_ERROR(columns_[i].Store(records_.fields(), value));
    }
    return OkStatus();
  }

 private:
  CsvRecords records_;
  const size_t width_;
  std::vector<CsvColumns> columns_;
};

class TableFormat : public CsvFormat {
 public:
  // `header` contains the text of the file up to the end of the header.
  TableFormat(const CsvTableOptions& options, std::string header)
      : CsvFormat({.delimiter = options.delimiter}),
        features_(options.features),
        delimiter_(options.delimiter),
        header_(std::move(header)) {}

  std::unique_ptr<RecordParser> MakeParser(const std::vector<ExampleFeature>&) const override {
    CsvRecords records(header_, delimiter_);
    ENFORCE(records.Next().value_or(false), "OpenCsvTable has read the header");
    return std::make_unique<TableParser>(features_, records.fields(), delimiter_);
  }

 private:
  const std::vector<CsvFeature> features_;
  const char delimiter_;
  const std::string header_;
};

// Returns text from which tasks see whether they read the same columns.
std::string LayoutOf(const CsvTableOptions& options) {
  std::string layout = StrCat("delimiter ", std::string(1, options.delimiter), "\n");
  for (const CsvFeature& feature : options.features)
    layout += StrCat(feature.feature.name, ": ", absl::StrJoin(feature.columns, "\n"), "\n\n");
  return layout;
}

StatusOr<std::shared_ptr<const Source>> OpenTable(const CsvTableOptions& options) {
  ASSIGN_OR_RETURN(std::string header,
                   FirstCsvRecord(options.file, {.delimiter = options.delimiter}));
  CsvRecords records(header, options.delimiter);
  Table columns(options);
  RETURN_IF_ERROR(Annotate(FindColumns(records, columns), options.file));
  RecordOptions opened{.files = {options.file},
                       .features = {},
                       .fields = options.fields,
                       .layout = LayoutOf(options),
                       .cache_dir = options.storage.cache_dir,
                       .most_listed = kMostListedOnDisk,
                       .can_skip_damaged = false,
                       .threads = options.threads};
  for (const CsvFeature& feature : options.features) opened.features.push_back(feature.feature);
  return OpenRecords(std::make_unique<const TableFormat>(options, std::move(header)), opened);
}

}  // namespace

StatusOr<std::shared_ptr<const Source>> OpenCsvTable(const CsvTableOptions& options) {
  StatusOr<std::shared_ptr<const Source>> loaded = LoadTable(options);
  if (!loaded.ok()) {
    const bool named = Message(loaded.status()).starts_with(options.file);
    return named ? loaded.status() : Annotate(loaded.status(), options.file);
  }
  return *loaded != nullptr ? loaded : OpenTable(options);
}

}  // namespace tfjob::data
