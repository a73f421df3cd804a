// Summarises tables of numbers, which are read completely into memory.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "runtime/data/dataset.h"
#include "runtime/data/inspect/file_format.h"

namespace tfjob::data {
namespace {

struct CsvDialect {
  char delimiter = ',';
  bool header = false;
};

// Removes the first line from `text`, and returns it without its end.
std::string_view TakeFirstLine(std::string_view& text) {
  const size_t end = std::min(text.find('\n'), text.size());
  std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

// Returns whether the line may be a row of at least two numbers.
bool IsRow(std::string_view line, char delimiter) {
  const auto of_number = [&](char c) {
    return std::string_view("0123456789+-.eE \t\"").find(c) != std::string_view::npos;
  };
  return line.find(delimiter) != std::string_view::npos &&
         line.find_first_of("0123456789") != std::string_view::npos &&
         std::ranges::all_of(line, [&](char c) { return c == delimiter || of_number(c); });
}

// Returns nullopt if the text does not begin with a row of numbers, perhaps after a header.
std::optional<CsvDialect> DialectOf(std::string_view text) {
  const std::string_view first = TakeFirstLine(text), second = TakeFirstLine(text);
  for (const char delimiter : {',', ';', '\t', '|'}) {
    if (IsRow(first, delimiter)) return CsvDialect{.delimiter = delimiter, .header = false};
    if (first.find(delimiter) != std::string_view::npos && IsRow(second, delimiter))
      return CsvDialect{.delimiter = delimiter, .header = true};
  }
  return std::nullopt;
}

// The columns of a table, in the order of the file. The last one is the label's.
class Columns {
 public:
  Columns(const Dataset& dataset, std::string_view header, char delimiter)
      : features_(dataset.arrays[0].values.data<double>()),
        labels_(dataset.arrays[1].values.data<double>()),
        count_(features_.size() / labels_.size() + 1) {
    if (!header.empty()) {
      names_ = absl::StrSplit(absl::string_view(header.data(), header.size()), delimiter);
    }
    for (size_t i = names_.size(); i < count_; ++i) names_.push_back(StrCat("column ", i));
  }

  size_t count() const { return count_; }
  int64_t rows() const { return static_cast<int64_t>(labels_.size()); }
  double At(int64_t row, size_t column) const {
    const auto index = static_cast<size_t>(row);
    return column + 1 == count_ ? labels_[index] : features_[index * (count_ - 1) + column];
  }
  const std::string& name(size_t column) const { return names_[column]; }

 private:
  const std::span<const double> features_, labels_;
  const size_t count_;
  std::vector<std::string> names_;
};

void AddColumns(const Columns& columns, FileSummary& summary) {
  for (size_t column = 0; column < columns.count(); ++column) {
    FieldSummary* const field = summary.Field(columns.name(column), "number");
    if (field == nullptr) return;
    field->examples += columns.rows();
    for (int64_t row = 0; row < columns.rows(); ++row) field->AddNumber(columns.At(row, column));
  }
}

std::string LineText(const Columns& columns, int64_t row) {
  std::vector<std::string> first;
  for (size_t column = 0; column < std::min<size_t>(columns.count(), kMostValues); ++column)
    first.push_back(StrCat(columns.At(row, column)));
  return ListText(first, static_cast<int64_t>(columns.count()));
}

}  // namespace

bool IsCsv(const FileStart& start) {
  return DialectOf(start.bytes).has_value();
}

StatusOr<FileSummary> SummariseCsv(const std::string& path, const SummaryOptions& options,
                                   const StopSource&) {
  ASSIGN_OR_RETURN(const FileStart start, StartOfFile(path));
  const CsvDialect dialect = DialectOf(start.bytes).value_or(CsvDialect());
  FileSummary summary(path, dialect.header ? "CSV with a header" : "CSV without a header",
                      options.most_damage);
  const StatusOr<Dataset> dataset = LoadCsv({.file = path,
                                             .header = dialect.header,
                                             .delimiter = dialect.delimiter,
                                             .features = DType::kFloat64});
  if (absl::IsInvalidArgument(dataset.status()) || absl::IsDataLoss(dataset.status())) {
    summary.AddDamage(Message(dataset.status()));
    return summary;
  }
  RETURN_IF_ERROR(dataset.status());
  std::string_view text = start.bytes;
  const Columns columns(*dataset, dialect.header ? TakeFirstLine(text) : std::string_view(),
                        dialect.delimiter);
  summary.examples = columns.rows();
  AddColumns(columns, summary);
  for (int64_t row = 0; row < std::min(summary.examples, options.examples); ++row)
    summary.AddExample(StrCat("line ", dataset->first_row + row), {LineText(columns, row)});
  return summary;
}

}  // namespace tfjob::data
