#include "runtime/data/csv/csv_table.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>

#include "runtime/base/did_you_mean.h"
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
  // Some writers add ".0" to integers. From 2^53 on, a double may be a rounded integer.
  const std::optional<double> number = ParseCsvNumber(text);
  if (number && std::floor(*number) == *number && std::fabs(*number) < 0x1p53)
    return static_cast<int64_t>(*number);
  return InvalidArgument("expected an integer of 64 bits, got ", text::Quote(text));
}

// Reads one feature of all records.
class FeatureColumn {
 public:
  explicit FeatureColumn(const CsvFeature& of)
      : feature_(of.feature),
        names_(of.columns),
        elements_(static_cast<size_t>(of.feature.shape.num_elements())) {
    if (HasIds(feature_)) strings_ = std::make_unique<StringReader>(feature_);
  }

  // Finds the columns among the names in the first record.
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

  Status Add(const Fields& record) {
    const size_t size = SizeOf(feature_.dtype), begin = bytes_.size();
    bytes_.resize(begin + elements_ * size);
    const std::span<std::byte> all = std::span(bytes_).subspan(begin);
    for (size_t i = 0; i < columns_.size(); ++i) {
      const std::span<std::byte> to = feature_.tokens ? all : all.subspan(i * size, size);
      const Status stored = Store(record[columns_[i]], to);
      if (!stored.ok()) return Annotate(stored, StrCat("column ", names_[i]));
    }
    return OkStatus();
  }

  // Returns all values. Call it once.
  Tensor Finish(int64_t records) {
    std::vector<int64_t> dims = feature_.shape.dims();
    dims.insert(dims.begin(), records);
    Tensor values(feature_.dtype, Shape(std::move(dims)), Buffer::Contents::kUndefined);
    std::ranges::copy(bytes_, values.bytes().begin());
    bytes_ = {};
    return values;
  }

  const ExampleFeature& feature() const { return feature_; }

 private:
  Status Store(std::string_view field, std::span<std::byte> to) {
    const bool empty = field.empty() && !feature_.tokens;  // a text may be empty
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
  const size_t elements_;
  std::unique_ptr<StringReader> strings_;  // null unless the feature consists of ids
  std::vector<size_t> columns_;
  std::vector<std::byte> bytes_;  // the values of all records
};

// The features of the records read so far.
class Table {
 public:
  explicit Table(const CsvTableOptions& options) : options_(options) {
    for (const CsvFeature& feature : options.features) columns_.emplace_back(feature);
  }

  Status Begin(const Fields& header) {
    width_ = header.size();
    for (FeatureColumn& column : columns_) RETURN_IF_ERROR(column.Find(header));
    return OkStatus();
  }

  Status Add(const Fields& record, int64_t line) {
    if (record.size() != width_)
      return InvalidArgument("expected ", width_, " fields, got ", record.size());
    for (FeatureColumn& column : columns_) RETURN_IF_ERROR(column.Add(record));
    lines_.push_back(line);
    return OkStatus();
  }

  StatusOr<Dataset> Finish() {
    if (lines_.empty())
      return InvalidArgument("the file has no records after its header; expected at least one");
    std::map<std::string, Tensor> values;
    for (FeatureColumn& column : columns_)
      values.emplace(column.feature().name, column.Finish(static_cast<int64_t>(lines_.size())));
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
  std::vector<int64_t> lines_;  // in which the records begin
};

// Reads the text. The errors do not name the file.
StatusOr<Dataset> ReadTable(const CsvTableOptions& options, std::string_view text) {
  CsvRecords records(text, options.delimiter);
  Table table(options);
  ASSIGN_OR_RETURN(const bool header, records.Next());
  if (!header) return InvalidArgument("the file is empty; expected the names of columns");
  const Status found = table.Begin(records.fields());
  if (!found.ok()) return Annotate(found, StrCat("line ", records.line()));
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
