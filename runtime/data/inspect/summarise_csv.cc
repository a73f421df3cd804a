// Summarises CSV files line by line. Columns may hold text as well as numbers, although training
// can read text columns only with the `features` key. Every line break and every delimiter is a
// separator, even within quotation marks.
#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "runtime/data/csv_line.h"
#include "runtime/data/inspect/file_format.h"
#include "runtime/data/jsonl/line_reader.h"
#include "runtime/data/records/record_files.h"

namespace tfjob::data {
namespace {

using Fields = std::vector<std::string_view>;

constexpr uint64_t kMostLine = 64 << 20;
// The number of columns to describe. This is one more than a summary shows, so the summary states
// that there are more columns.
constexpr size_t kMostDescribed = FileSummary::kMostFields + 1;

struct CsvDialect {
  char delimiter = ',';
  bool header = false;
};

// Removes the first line from `text`, and returns the line without its line break.
std::string_view TakeFirstLine(std::string_view& text) {
  const size_t end = std::min(text.find('\n'), text.size());
  std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

enum class CellKind { kNumber, kNotFinite, kEmpty, kText };

CellKind KindOf(std::string_view cell) {
  if (cell.empty()) return CellKind::kEmpty;
  if (ParseCsvNumber(cell)) return CellKind::kNumber;
  std::string_view name = cell;
  if (name.front() == '-' || name.front() == '+') name.remove_prefix(1);
  for (const char* const other : {"nan", "inf", "infinity"}) {
    if (absl::EqualsIgnoreCase(absl::string_view(name.data(), name.size()), other))
      return CellKind::kNotFinite;
  }
  return CellKind::kText;
}

bool Any(const Fields& fields, CellKind kind) {
  return std::ranges::any_of(fields, [&](std::string_view cell) { return KindOf(cell) == kind; });
}

// Returns whether these fields may be a row of at least two numbers.
bool IsRow(const Fields& fields) {
  return fields.size() >= 2 && Any(fields, CellKind::kNumber) && !Any(fields, CellKind::kText);
}

// Returns whether these fields may be the names of columns.
bool IsHeader(const Fields& fields) {
  return !Any(fields, CellKind::kNumber) && Any(fields, CellKind::kText);
}

// Returns the dialect of `text` if the text starts with a row of numbers, or with a header and a
// row of numbers. Otherwise, returns nullopt. If the format is `known` to be CSV, the row after a
// header may also contain strings, and the most likely dialect is always returned.
std::optional<CsvDialect> DialectOf(std::string_view text, bool known) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  const std::string_view first_line = TakeFirstLine(text), second_line = TakeFirstLine(text);
  std::optional<CsvDialect> likely;
  for (const char delimiter : {',', ';', '\t', '|'}) {
    Fields first, second;
    SplitCsvLine(first_line, delimiter, first);
    SplitCsvLine(second_line, delimiter, second);
    if (first.size() < 2) continue;
    if (IsRow(first)) return CsvDialect{.delimiter = delimiter, .header = false};
    const bool row = known ? Any(second, CellKind::kNumber) : IsRow(second);
    if (IsHeader(first) && row && first.size() == second.size())
      return CsvDialect{.delimiter = delimiter, .header = true};
    if (!likely) likely = CsvDialect{.delimiter = delimiter, .header = false};
  }
  if (!known) return std::nullopt;
  return likely.value_or(CsvDialect());
}

// Summarises the values of one column, by their kind.
struct ColumnSummary {
  std::string name;
  FieldSummary numbers, texts, empty;
};

class TableSummary {
 public:
  TableSummary(const std::string& path, const CsvDialect& dialect, const SummaryOptions& options)
      : path_(path),
        dialect_(dialect),
        options_(options),
        summary_(path, dialect.header ? "CSV with a header" : "CSV without a header",
                 options.most_damage) {}

  FileSummary& summary() { return summary_; }

  // Adds line `number`, which must not be blank.
  void Add(int64_t number, std::string_view line) {
    for (; blank_ > 0 && blank_ < number; ++blank_) Damage(blank_, "expected a row, got none");
    blank_ = 0;
    if (line.find('\0') != std::string_view::npos)
      return Damage(number, "expected text, got a zero byte");
    const auto count = 1 + static_cast<size_t>(std::ranges::count(line, dialect_.delimiter));
    if (options_.fields) SplitFirst(line);
    if (columns_ == 0) {
      Begin(count);
      if (dialect_.header) return;
    }
    if (count == columns_) return AddRow(number);
    const bool quoted = line.find('"') != std::string_view::npos;
    Damage(number, StrCat("expected ", columns_, " columns, got ", count,
                          quoted ? "; a quoted value must not contain the delimiter" : ""));
  }
  // Records a blank line. A blank line counts as damage unless only blank lines follow it.
  void AddBlank(int64_t number) {
    if (blank_ == 0) blank_ = number;
  }
  void Damage(int64_t number, std::string_view what) {
    summary_.AddDamage(StrCat(LinePlace({.path = path_}, number), ": ", what));
  }

  FileSummary End() && {
    if (columns_ == 0 && summary_.damaged() == 0)
      summary_.AddDamage(StrCat(path_, ": line 1: the file is empty; expected a table"));
    for (ColumnSummary& column : described_) {
      AddField(column.name, "number", column.numbers);
      AddField(column.name, "text", column.texts);
      AddField(column.name, "empty", column.empty);
    }
    return std::move(summary_);
  }

 private:
  // Splits only the columns that are described, because a line may have millions of columns.
  void SplitFirst(std::string_view line) {
    size_t end = line.find(dialect_.delimiter);
    for (size_t i = 1; i < kMostDescribed && end != std::string_view::npos; ++i)
      end = line.find(dialect_.delimiter, end + 1);
    SplitCsvLine(line.substr(0, end), dialect_.delimiter, fields_);
  }

  void Begin(size_t columns) {
    columns_ = columns;
    std::set<std::string_view> names;
    for (size_t i = 0; i < fields_.size(); ++i) {
      const bool named = dialect_.header && !fields_[i].empty() && names.insert(fields_[i]).second;
      described_.push_back({.name = named ? std::string(fields_[i]) : StrCat("column ", i)});
    }
  }

  void AddRow(int64_t number) {
    for (size_t i = 0; i < described_.size(); ++i) AddCell(fields_[i], described_[i]);
    if (summary_.examples++ >= options_.examples || !options_.fields) return;
    std::vector<std::string> first;
    for (size_t i = 0; i < std::min<size_t>(fields_.size(), kMostValues); ++i) {
      const bool text = KindOf(fields_[i]) == CellKind::kText || fields_[i].empty();
      first.push_back(text ? ValueText(fields_[i]) : std::string(fields_[i]));
    }
    summary_.AddExample(StrCat("line ", number), {ListText(first, static_cast<int64_t>(columns_))});
  }

  static void AddCell(std::string_view cell, ColumnSummary& column) {
    if (const std::optional<double> number = ParseCsvNumber(cell)) {
      ++column.numbers.examples;
      return column.numbers.AddNumber(*number);
    }
    switch (KindOf(cell)) {
      case CellKind::kEmpty:
        ++column.empty.examples;
        return;
      case CellKind::kText:
        ++column.texts.examples;
        return column.texts.bytes.Add(static_cast<int64_t>(cell.size()));
      case CellKind::kNumber:
      case CellKind::kNotFinite:
        ++column.numbers.examples;
        ++column.numbers.not_finite;
    }
  }

  void AddField(const std::string& name, std::string_view kind, FieldSummary& values) {
    if (values.examples == 0) return;
    FieldSummary* const field = summary_.Field(name, kind);
    if (field == nullptr) return;
    values.name = std::move(field->name);
    values.kind = std::move(field->kind);
    *field = std::move(values);
  }

  const std::string& path_;
  const CsvDialect dialect_;
  const SummaryOptions& options_;
  FileSummary summary_;
  size_t columns_ = 0;                    // 0 before the first line is read
  std::vector<ColumnSummary> described_;  // the first columns
  Fields fields_;                         // the first fields of the current line, if described
  int64_t blank_ = 0;                     // number of the first pending blank line, or 0
};

}  // namespace

bool IsCsv(const FileStart& start) {
  return DialectOf(start.bytes, /*known=*/false).has_value();
}

StatusOr<FileSummary> SummariseCsv(const std::string& path, const SummaryOptions& options,
                                   const StopSource& stop) {
  ASSIGN_OR_RETURN(const FileStart start, StartOfFile(path));
  Damage unpacking;
  ASSIGN_OR_RETURN(const RecordFiles files,
                   RecordFiles::Open({path}, TemporaryFolder(options.cache_dir), &unpacking));
  TableSummary table(path, *DialectOf(start.bytes, /*known=*/true), options);
  if (unpacking.places > 0) table.summary().AddDamage(unpacking.first);
  RecordFileReader reader(files);
  LineReader lines(files, 0, reader);
  const uint64_t size = files.files()[0].size;
  ASSIGN_OR_RETURN(uint64_t offset, lines.Begin());
  for (int64_t number = 1; offset < size; ++number) {
    if (stop.requested()) return Cancelled("stopped while reading ", path);
    ASSIGN_OR_RETURN(const Line line, lines.At(offset, size));
    offset = line.next;
    if (line.blank) {
      table.AddBlank(number);
    } else if (line.size() > kMostLine) {
      table.Damage(number, StrCat("expected at most ", kMostLine, " bytes, got ", line.size()));
    } else {
      ASSIGN_OR_RETURN(std::string_view text, lines.Read(line));
      if (text.ends_with('\r')) text.remove_suffix(1);
      table.Add(number, text);
    }
  }
  RETURN_IF_ERROR(reader.CheckUnchanged());
  return std::move(table).End();
}

}  // namespace tfjob::data
