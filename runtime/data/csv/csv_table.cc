#include "runtime/data/csv/csv_table.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>

#include "runtime/base/did_you_mean.h"
#include "runtime/base/env.h"
#include "runtime/data/byte_source.h"
#include "runtime/data/csv/csv_records.h"
#include "runtime/data/csv_line.h"
#include "runtime/data/records/string_reader.h"
#include "runtime/data/text/text_quote.h"

namespace tfjob::data {
namespace {

using Fields = std::vector<std::string_view>;

StatusOr<float> ParseFloat(std::string_view text) {
  const std::optional<double> number = ParseCsvNumber(text);
  const float rounded = number ? static_cast<float>(*number) : INFINITY;
  if (std::isfinite(rounded)) return rounded;
  return InvalidArgument("expected a finite number that fits into float32, got ",
                         text::Quote(text));
}

StatusOr<int64_t> ParseInteger(std::string_view text) {
  int64_t integer = 0;
  const char* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, integer);
  if (parsed.ec == std::errc() && parsed.ptr == end) return integer;
  // Accept ".0" after integers, which some programs write. A double of 2^53 or more may be a
  // rounded integer.
  const std::optional<double> number = ParseCsvNumber(text);
  if (number && std::floor(*number) == *number && std::fabs(*number) < 0x1p53)
    return static_cast<int64_t>(*number);
  return InvalidArgument("expected an integer of 64 bits, got ", text::Quote(text));
}

size_t BytesOf(const ExampleFeature& feature) {
  return static_cast<size_t>(feature.shape.num_elements()) * SizeOf(feature.dtype);
}

// Returns InvalidArgument if the values of all records do not fit in memory.
Status CheckMemory(const CsvTableOptions& options, int64_t records) {
  const size_t most =
      options.most_bytes > 0 ? options.most_bytes : static_cast<size_t>(AvailableMemory()) / 4 * 3;
  size_t each = 0;
  for (const CsvFeature& feature : options.features) each += BytesOf(feature.feature);
  if (static_cast<size_t>(records) <= most / std::max<size_t>(each, 1)) return OkStatus();
  return InvalidArgument("the values of ", records, " records, of ", each,
                         " bytes each, need more ", "than the ", most,
                         " bytes that they may take; reduce max_length, or ",
                         "write the records as JSON lines, which are read when a batch needs them");
}

// Reads one feature of all records.
class FeatureColumn {
 public:
  explicit FeatureColumn(const CsvFeature& of) : feature_(of.feature), names_(of.columns) {
    if (HasIds(feature_)) strings_ = std::make_unique<StringReader>(feature_);
  }

  // Looks up the feature's columns in the header.
  Status Find(const Fields& header) {
    const std::vector<std::string> known(header.begin(), header.end());
    for (const std::string& name : names_) {
      const auto found = std::ranges::find(known, name);
      if (found == known.end())
        return InvalidArgument("no column \"", name, "\"", DidYouMean(name, known));
      if (std::find(found + 1, known.end(), name) != known.end())
        return InvalidArgument("expected one column \"", name, "\", got several");
      columns_.push_back(static_cast<size_t>(found - known.begin()));
    }
    return OkStatus();
  }

  // Allocates memory for the values of `records` records.
  void Begin(int64_t records) {
    std::vector<int64_t> dims = feature_.shape.dims();
    dims.insert(dims.begin(), records);
    values_ = Tensor(feature_.dtype, Shape(std::move(dims)));
  }

  // Stores the values of record number `index`.
  Status Set(size_t index, const Fields& record) {
    const size_t size = SizeOf(feature_.dtype), bytes = BytesOf(feature_);
    const std::span<std::byte> all = values_.bytes().subspan(index * bytes, bytes);
    for (size_t i = 0; i < columns_.size(); ++i) {
      const std::span<std::byte> to = feature_.tokens ? all : all.subspan(i * size, size);
      const Status stored = Store(record[columns_[i]], to);
      if (!stored.ok()) return Annotate(stored, StrCat("column ", names_[i]));
    }
    return OkStatus();
  }

  const Tensor& values() const { return values_; }
  const ExampleFeature& feature() const { return feature_; }

 private:
  Status Store(std::string_view field, std::span<std::byte> to) {
    const bool empty = field.empty() && !feature_.tokens;  // strings to tokenize may be empty
    if (empty && feature_.fill) {
      FillMissing(feature_, to);
    } else if (empty) {
      return InvalidArgument("expected a value, got an empty field; set default_value, or fill ",
                             "in the value");
    } else if (strings_ != nullptr) {
      strings_->Begin(to);
      return strings_->Add(field);
    } else if (feature_.dtype == DType::kFloat32) {
      ASSIGN_OR_RETURN(*reinterpret_cast<float*>(to.data()), ParseFloat(field));
    } else {
      ASSIGN_OR_RETURN(*reinterpret_cast<int64_t*>(to.data()), ParseInteger(field));
    }
    return OkStatus();
  }

  const ExampleFeature& feature_;
  const std::vector<std::string>& names_;
  std::unique_ptr<StringReader> strings_;  // null unless the feature consists of ids
  std::vector<size_t> columns_;
  Tensor values_;  // of all records
};

// Collects the features of all records.
class Table {
 public:
  explicit Table(const CsvTableOptions& options) : options_(options) {
    for (const CsvFeature& feature : options.features) columns_.emplace_back(feature);
  }

  Status Find(const Fields& header) {
    width_ = header.size();
    for (FeatureColumn& column : columns_) RETURN_IF_ERROR(column.Find(header));
    return OkStatus();
  }

  // Allocates memory for `records` calls of Add.
  void Begin(int64_t records) {
    for (FeatureColumn& column : columns_) column.Begin(records);
    lines_.reserve(static_cast<size_t>(records));
  }

  Status Add(const Fields& record, int64_t line) {
    if (record.size() != width_)
      return InvalidArgument("expected ", width_, " fields, got ", record.size());
    for (FeatureColumn& column : columns_) RETURN_IF_ERROR(column.Set(lines_.size(), record));
    lines_.push_back(line);
    return OkStatus();
  }

  Dataset Finish() {
    std::map<std::string, Tensor> values;
    for (const FeatureColumn& column : columns_)
      values.emplace(column.feature().name, column.values());
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
  std::vector<FeatureColumn> columns_;
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

// Reads the table from the text of the file. The errors do not name the file.
StatusOr<Dataset> ReadTable(const CsvTableOptions& options, std::string_view text) {
  CsvRecords records(text, options.delimiter);
  Table table(options);
  ASSIGN_OR_RETURN(const bool header, records.Next());
  if (!header) return InvalidArgument("the file is empty; expected the names of columns");
  const Status found = table.Find(records.fields());
  if (!found.ok()) return Annotate(found, StrCat("line ", records.line()));
  ASSIGN_OR_RETURN(const int64_t count, CountRecords(records));
  if (count == 0)
    return InvalidArgument("the file has no records after its header; expected at least one");
  RETURN_IF_ERROR(CheckMemory(options, count));
  table.Begin(count);
  while (true) {
    ASSIGN_OR_RETURN(const bool more, records.Next());
    if (!more) return table.Finish();
    const Status added = table.Add(records.fields(), records.line());
    if (!added.ok()) return Annotate(added, StrCat("line ", records.line()));
  }
}

}  // namespace

StatusOr<Dataset> LoadCsvTable(const CsvTableOptions& options) {
  ASSIGN_OR_RETURN(ByteSource source, ByteSource::Open(options.file));
  ASSIGN_OR_RETURN(const std::string text, source.ReadText());
  StatusOr<Dataset> dataset = ReadTable(options, text);
  return dataset.ok() ? std::move(dataset) : Annotate(dataset.status(), options.file);
}

}  // namespace tfjob::data
