#include "runtime/data/csv_line.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>

#include "runtime/base/did_you_mean.h"
#include "runtime/data/dataset.h"

namespace tfjob::data {
namespace {

std::string_view Trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  const bool quoted = text.size() >= 2 && text.front() == '"' && text.back() == '"';
  return quoted ? text.substr(1, text.size() - 2) : text;
}

// Returns the index of the label's column.
StatusOr<size_t> FindLabel(const CsvOptions& options, const std::vector<std::string>& names,
                           size_t columns) {
  if (options.label_column.empty()) return columns - 1;
  const auto named = std::find(names.begin(), names.end(), options.label_column);
  if (named != names.end()) return static_cast<size_t>(named - names.begin());
  int64_t index = 0;
  const char* end = options.label_column.data() + options.label_column.size();
  const auto parsed = std::from_chars(options.label_column.data(), end, index);
  const int64_t count = static_cast<int64_t>(columns);
  if (parsed.ec == std::errc() && parsed.ptr == end) {
    if (index >= -count && index < count)
      return static_cast<size_t>(index < 0 ? index + count : index);
    return InvalidArgument(options.file, ": label column ", index, ": expected an index from ",
                           -count, " to ", count - 1);
  }
  return InvalidArgument(
      options.file, ": no column \"", options.label_column, "\"",
      options.header ? DidYouMean(options.label_column, names) : "; the file has no header");
}

}  // namespace

void SplitCsvLine(std::string_view line, char delimiter, std::vector<std::string_view>& fields) {
  fields.clear();
  while (true) {
    const size_t end = line.find(delimiter);
    fields.push_back(Trim(line.substr(0, end)));
    if (end == std::string_view::npos) return;
    line.remove_prefix(end + 1);
  }
}

std::optional<double> ParseCsvNumber(std::string_view text) {
  if (text.starts_with("+-")) return std::nullopt;
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value))
    return std::nullopt;
  return value;
}

StatusOr<CsvNumberColumns> FindCsvColumns(const CsvOptions& options,
                                          const std::vector<std::string_view>& first) {
  CsvNumberColumns columns{.count = first.size()};
  if (columns.count < 2) {
    return InvalidArgument(options.file,
                           ": expected at least two columns, a feature and a label, separated by '",
                           std::string(1, options.delimiter), "', got one");
  }
  std::vector<std::string> names;
  if (options.header) names.assign(first.begin(), first.end());
  ASSIGN_OR_RETURN(columns.label, FindLabel(options, names, columns.count));
  return columns;
}

}  // namespace tfjob::data
