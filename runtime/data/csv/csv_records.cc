#include "runtime/data/csv/csv_records.h"

#include <algorithm>

namespace tfjob::data {
namespace {

constexpr char kQuote = '"';

std::string_view WithoutSpace(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// Returns the white space that may precede a quotation mark. A delimiter is not skipped, even if it
// is white space, because it ends an empty field.
const char* SpaceFor(char delimiter) {
  return delimiter == '\t' ? " " : delimiter == ' ' ? "\t" : " \t";
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
  StatusOr<bool> taken = Take();
  return taken.ok() ? taken : Annotate(taken.status(), StrCat("line ", line_));
}

Status CsvRecords::Split(std::string_view text) {
  rest_ = text;
  ASSIGN_OR_RETURN(const bool found, Take());
  return found ? OkStatus() : InvalidArgument("expected a record, got a blank line");
}

StatusOr<bool> CsvRecords::Take() {
  while (!rest_.empty() && AtEndOfLine(0)) (void)EndOf(0);
  fields_.clear();
  if (rest_.empty()) return false;
  line_ = next_line_;
  if (TakePlain()) return true;
  unquoted_.clear();
  while (true) {
    ASSIGN_OR_RETURN(const End end, TakeField());
    if (end == End::kRecord) return true;
  }
}

// Takes a record without quotation marks, whose fields are found faster. Returns false if the line
// has a quotation mark.
bool CsvRecords::TakePlain() {
  const size_t end = std::min(rest_.find('\n'), rest_.size());
  std::string_view line = rest_.substr(0, end);
  if (line.find(kQuote) != std::string_view::npos) return false;
  if (line.ends_with('\r')) line.remove_suffix(1);
  while (true) {
    const size_t field = line.find(delimiter_);
    fields_.push_back(WithoutSpace(line.substr(0, field)));
    if (field == std::string_view::npos) break;
    line.remove_prefix(field + 1);
  }
  ++next_line_;
  rest_.remove_prefix(std::min(end + 1, rest_.size()));
  return true;
}

StatusOr<CsvRecords::End> CsvRecords::TakeField() {
  const size_t first = rest_.find_first_not_of(SpaceFor(delimiter_));
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

bool EndsInQuotes(std::string_view line, char delimiter, bool open) {
  if (!open && line.find(kQuote) == std::string_view::npos) return false;
  for (size_t at = 0;;) {
    if (open) {
      at = line.find(kQuote, at);
      if (at == std::string_view::npos) return true;
      if (line.substr(at + 1).starts_with(kQuote)) {
        at += 2;
        continue;
      }
      ++at;
      open = false;
    } else if (const size_t first = line.find_first_not_of(SpaceFor(delimiter), at);
               first != std::string_view::npos && line[first] == kQuote) {
      at = first + 1;
      open = true;
      continue;
    }
    at = line.find(delimiter, at);
    if (at == std::string_view::npos) return false;
    ++at;
  }
}

}  // namespace tfjob::data
