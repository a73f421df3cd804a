#include "runtime/data/csv/csv_numbers.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/data/byte_source.h"
#include "runtime/data/csv/csv_format.h"
#include "runtime/data/csv/csv_records.h"
#include "runtime/data/csv_line.h"
#include "runtime/data/records/record_source.h"
#include "runtime/data/table_source.h"

namespace tfjob::data {
namespace {

// The indices of the features.
constexpr size_t kNumbers = 0, kLabel = 1;

// Returns the first line of the text, without its line break.
std::string_view FirstLine(std::string_view text) {
  std::string_view line = text.substr(0, text.find('\n'));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

class NumbersParser : public RecordParser {
 public:
  NumbersParser(char delimiter, const CsvNumberColumns& columns)
      : delimiter_(delimiter), columns_(columns) {}

  Status Parse(std::string_view record, ExampleRow& row) override {
    SplitCsvLine(FirstLine(record), delimiter_, fields_);
    if (fields_.size() != columns_.count)
      return InvalidArgument("expected ", columns_.count, " columns, got ", fields_.size());
    ASSIGN_OR_RETURN(const std::span<std::byte> numbers, row.Take(kNumbers));
    ASSIGN_OR_RETURN(const std::span<std::byte> label, row.Take(kLabel));
    return row.feature(kNumbers).dtype == DType::kFloat64
               ? Store(reinterpret_cast<double*>(numbers.data()), label)
               : Store(reinterpret_cast<float*>(numbers.data()), label);
  }

 private:
  template <typename T>
  Status Store(T* numbers, std::span<std::byte> label) const {
    for (size_t i = 0; i < fields_.size(); ++i) {
      const std::optional<double> number = ParseCsvNumber(fields_[i]);
      if (!number) {
        return InvalidArgument("column ", i, ": expected a finite number, got \"",
                               fields_[i].substr(0, 40), "\"");
      }
      if (i == columns_.label) {
        *reinterpret_cast<double*>(label.data()) = *number;
      } else {
        *numbers++ = static_cast<T>(*number);
      }
    }
    return OkStatus();
  }

  const char delimiter_;
  const CsvNumberColumns columns_;
  std::vector<std::string_view> fields_;
};

class NumbersFormat : public CsvFormat {
 public:
  NumbersFormat(const CsvLayout& layout, const CsvNumberColumns& columns)
      : CsvFormat(layout), delimiter_(layout.delimiter), columns_(columns) {}

  std::unique_ptr<RecordParser> MakeParser(const std::vector<ExampleFeature>&) const override {
    return std::make_unique<NumbersParser>(delimiter_, columns_);
  }

 private:
  const char delimiter_;
  const CsvNumberColumns columns_;
};

StatusOr<std::shared_ptr<const Source>> OpenNumbers(const CsvOptions& options,
                                                    const StorageOptions& storage) {
  const CsvLayout layout{.delimiter = options.delimiter, .header = options.header, .quotes = false};
  ASSIGN_OR_RETURN(const std::string text, FirstCsvRecord(options.file, layout));
  std::string_view first = text;
  if (first.starts_with(kByteOrderMark)) first.remove_prefix(kByteOrderMark.size());
  std::vector<std::string_view> fields;
  SplitCsvLine(FirstLine(first), options.delimiter, fields);
  ASSIGN_OR_RETURN(const CsvNumberColumns columns, FindCsvColumns(options, fields));
  RecordOptions opened{
      .files = {options.file},
      .features = {{.name = kFeaturesArray,
                    .dtype = options.features,
                    .shape = {static_cast<int64_t>(columns.count) - 1}},
                   {.name = kLabelsArray, .dtype = DType::kFloat64}},
      .fields = {{kFeaturesArray, kFeaturesArray}, {kLabelsArray, kLabelsArray}},
      .layout = StrCat("delimiter ", std::string(1, options.delimiter), ", header ", options.header,
                       ", label in column ", columns.label),
      .cache_dir = storage.cache_dir,
      .most_listed = kMostListedOnDisk,
      .can_skip_damaged = false};
  return OpenRecords(std::make_unique<const NumbersFormat>(layout, columns), opened);
}

}  // namespace

StatusOr<std::shared_ptr<const Source>> OpenCsv(const CsvOptions& options,
                                                const StorageOptions& storage) {
  ASSIGN_OR_RETURN(const bool larger, UnpacksToMore(options.file, storage.most_in_memory));
  if (larger) return OpenNumbers(options, storage);
  ASSIGN_OR_RETURN(Dataset dataset, LoadCsv(options));
  return TableSource(std::make_shared<const Dataset>(std::move(dataset)));
}

}  // namespace tfjob::data
