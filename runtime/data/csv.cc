#include <algorithm>
#include <optional>

#include "runtime/data/byte_source.h"
#include "runtime/data/csv_line.h"
#include "runtime/data/dataset.h"

namespace tfjob::data {
namespace {

// Removes the first line from `rest`, and returns it without its "\n" or "\r\n".
std::string_view TakeLine(std::string_view& rest) {
  const size_t end = std::min(rest.find('\n'), rest.size());
  std::string_view line = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  return line;
}

// The values of the rows that have been read so far.
struct Rows {
  CsvNumberColumns columns;
  std::vector<float> features;
  std::vector<double> exact_features;  // used instead if the features are kFloat64
  std::vector<double> labels;
};

Status AddRow(const CsvOptions& options, int64_t line, const std::vector<std::string_view>& fields,
              Rows& rows) {
  if (fields.size() != rows.columns.count) {
    return InvalidArgument(options.file, ": line ", line, ": expected ", rows.columns.count,
                           " columns, got ", fields.size());
  }
  for (size_t i = 0; i < fields.size(); ++i) {
    const std::optional<double> number = ParseCsvNumber(fields[i]);
    if (!number) {
      return InvalidArgument(options.file, ": line ", line, ", column ", i,
                             ": expected a finite number, got \"", fields[i].substr(0, 40), "\"");
    }
    if (i == rows.columns.label) {
      rows.labels.push_back(*number);
    } else if (options.features == DType::kFloat64) {
      rows.exact_features.push_back(*number);
    } else {
      rows.features.push_back(static_cast<float>(*number));
    }
  }
  return OkStatus();
}

template <typename T>
Tensor ToTensor(Shape shape, const std::vector<T>& values) {
  Tensor tensor(DTypeOf<T>::value, std::move(shape), Buffer::Contents::kUndefined);
  std::copy(values.begin(), values.end(), tensor.data<T>().begin());
  return tensor;
}

Dataset ToDataset(const CsvOptions& options, const Rows& rows) {
  const int64_t count = static_cast<int64_t>(rows.labels.size());
  const Shape shape({count, static_cast<int64_t>(rows.columns.count) - 1});
  Dataset dataset{.row_name = "line", .first_row = options.header ? 2 : 1};
  dataset.arrays.push_back({kFeaturesArray, options.file,
                            options.features == DType::kFloat64
                                ? ToTensor(shape, rows.exact_features)
                                : ToTensor(shape, rows.features)});
  dataset.arrays.push_back({kLabelsArray, options.file, ToTensor({count}, rows.labels)});
  return dataset;
}

}  // namespace

StatusOr<Dataset> LoadCsv(const CsvOptions& options) {
  ASSIGN_OR_RETURN(ByteSource source, ByteSource::Open(options.file));
  ASSIGN_OR_RETURN(const std::string text, source.ReadText());
  std::string_view rest = text;
  if (rest.starts_with("\xEF\xBB\xBF")) rest.remove_prefix(3);  // a byte order mark
  while (!rest.empty() && (rest.back() == '\n' || rest.back() == '\r')) rest.remove_suffix(1);
  Rows rows;
  std::vector<std::string_view> fields;
  for (int64_t line = 1; !rest.empty(); ++line) {
    SplitCsvLine(TakeLine(rest), options.delimiter, fields);
    if (line == 1) {
      ASSIGN_OR_RETURN(rows.columns, FindCsvColumns(options, fields));
    }
    if (line == 1 && options.header) continue;
    RETURN_IF_ERROR(AddRow(options, line, fields, rows));
  }
  if (rows.labels.empty()) {
    return InvalidArgument(options.file, ": the file has zero rows",
                           options.header ? " after its header" : "", "; expected at least one");
  }
  return ToDataset(options, rows);
}

}  // namespace tfjob::data
