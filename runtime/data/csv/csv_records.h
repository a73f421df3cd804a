// Splits CSV text into records and fields according to RFC 4180
// (https://www.rfc-editor.org/rfc/rfc4180): a field in quotation marks may contain the delimiter,
// line breaks and doubled quotation marks.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"

namespace tfjob::data {

inline constexpr std::string_view kByteOrderMark =
    "\xEF\xBB\xBF";  // of UTF-8, at the beginning of a file

// Reads the records in a string one by one. The string must outlive this object.
class CsvRecords {
 public:
  // Ignores a byte order mark at the beginning of the text.
  CsvRecords(std::string_view text, char delimiter);
  // Splits the records that are passed to Split.
  explicit CsvRecords(char delimiter) : delimiter_(delimiter) {}

  // Reads the next record, skipping empty lines before it. Returns false at the end of the text.
  // Returns InvalidArgument, with the line, if a closing quotation mark is missing or is followed
  // by other text.
  StatusOr<bool> Next();
  // Reads the first record of `text`, which must outlive the fields. Returns the same errors as
  // Next, but without the line, and InvalidArgument if there is no record.
  Status Split(std::string_view text);

  // Returns the fields of the record that was read last. White space around fields is stripped.
  // Valid until the next call of Next or Split.
  const std::vector<std::string_view>& fields() const { return fields_; }
  // Returns the number of the record's first line, counted from 1.
  int64_t line() const { return line_; }

 private:
  // Whether another field follows, or the record ends.
  enum class End { kField, kRecord };

  StatusOr<bool> Take();
  bool TakePlain();
  StatusOr<End> TakeField();
  StatusOr<End> TakeQuoted();
  End EndOf(size_t position);
  bool AtEndOfLine(size_t position) const;

  std::string_view rest_;
  const char delimiter_;
  int64_t line_ = 0, next_line_ = 1;
  std::vector<std::string_view> fields_;
  std::deque<std::string> unquoted_;  // the contents of fields with doubled quotation marks
};

// Returns whether a line ends within a field in quotation marks, so that its record continues in
// the next line. `line` contains no line break; `open` is the result for the line before it, or
// false for the first line of a record.
bool EndsInQuotes(std::string_view line, char delimiter, bool open);

}  // namespace tfjob::data
