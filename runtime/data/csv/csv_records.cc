#include "runtime/data/csv/csv_records.h"

#include <algorithm>

namespace tfjob::data {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr char kQuote = '"';

std::string_view WithoutSpace(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

}  // namespace

CsvRecords::CsvRecords(std::string_view text, char delimiter) : rest_(text), delimiter_(delimiter) {
  if (rest_.starts_with(kByteOrderMark)) rest_.remove_prefix(kByteOrderMark.size());
}

bool CsvRecords::AtEndOfLine(size_t position) const {
  const std::string_view next = rest_.substr(position, 2);
  return next.starts_with('\n') || next == "\r\n" || next == "\r";
}

StatusOr<bool> CsvRecords::Next() {
  while (!rest_.empty() && AtEndOfLine(0)) (void)EndOf(0);
  fields_.clear();
  unquoted_.clear();
  if (rest_.empty()) return false;
  line_ = next_line_;
  while (true) {
    const StatusOr<End> end = TakeField();
    if (!end.ok()) return Annotate(end.status(), StrCat("line ", line_));
    if (*end == End::kRecord) return true;
  }
}

StatusOr<CsvRecords::End> CsvRecords::TakeField() {
  // Skip white space before a quotation mark. A delimiter is not skipped, even if it is white
  // space, because it ends an empty field.
  const char* const space = delimiter_ == '\t' ? " " : delimiter_ == ' ' ? "\t" : " \t";
  const size_t first = rest_.find_first_not_of(space);
  if (first != std::string_view::npos && rest_[first] == kQuote) {
    rest_.remove_prefix(first + 1);
    return TakeQuoted();
  }
  size_t end = 0;
  while (end < rest_.size() && rest_[end] != delimiter_ && !AtEndOfLine(end)) ++end;
  fields_.push_back(WithoutSpace(rest_.substr(0, end)));
  return EndOf(end);
}

StatusOr<CsvRecords::End> CsvRecords::TakeQuoted() {
  std::string* joined = nullptr;  // the field's text; null until a doubled quotation mark is found
  while (true) {
    const size_t end = rest_.find(kQuote);
    if (end == std::string_view::npos)
      return InvalidArgument("expected a second quotation mark, but the file ends before it");
    const std::string_view part = rest_.substr(0, end);
    next_line_ += std::ranges::count(part, '\n');
    const bool doubled = rest_.substr(end + 1, 1) == "\"";
    if (doubled && joined == nullptr) joined = &unquoted_.emplace_back();
    if (joined != nullptr) joined->append(part);
    if (doubled) joined->push_back(kQuote);
    rest_.remove_prefix(end + (doubled ? 2 : 1));
    if (doubled) continue;
    fields_.push_back(joined != nullptr ? std::string_view(*joined) : part);
    break;
  }
  size_t end = 0;
  while (end < rest_.size() && rest_[end] != delimiter_ && !AtEndOfLine(end)) ++end;
  if (!WithoutSpace(rest_.substr(0, end)).empty()) {
    return InvalidArgument("expected the delimiter after a field in quotation marks; a quotation ",
                           "mark within a field is written twice");
  }
  return EndOf(end);
}

CsvRecords::End CsvRecords::EndOf(size_t position) {
  const bool field = position < rest_.size() && rest_[position] == delimiter_;
  if (!field) ++next_line_;
  const size_t bytes = !field && rest_.substr(position, 1) == "\r" ? 2 : 1;
  rest_.remove_prefix(std::min(position + bytes, rest_.size()));
  return field ? End::kField : End::kRecord;
}

}  // namespace tfjob::data
