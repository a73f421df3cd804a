// Divides CSV text into records and fields, as RFC 4180 describes them
// (https://www.rfc-editor.org/rfc/rfc4180): a field in quotation marks may contain the delimiter,
// ends of lines, and quotation marks, which are doubled.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"

namespace tfjob::data {

// Reads the records of a text, which must outlive it, one after the other.
class CsvRecords {
 public:
  // Ignores a byte order mark at the beginning.
  CsvRecords(std::string_view text, char delimiter);

  // Reads the next record, and ignores lines without any character. Returns false at the end of the
  // text. Returns InvalidArgument, with the line, if a quotation mark is not closed, or if text
  // follows a closed one.
  StatusOr<bool> Next();

  // The fields of the record. White space around a field without quotation marks is not part of it.
  // Valid until the next call of Next.
  const std::vector<std::string_view>& fields() const { return fields_; }
  int64_t line() const { return line_; }  // in which the record begins, counted from 1

 private:
  // How a field ended.
  enum class End { kField, kRecord };

  StatusOr<End> TakeField();
  StatusOr<End> TakeQuoted();
  End EndOf(size_t position);
  bool AtEndOfLine(size_t position) const;

  std::string_view rest_;
  const char delimiter_;
  int64_t line_ = 0, next_line_ = 1;
  std::vector<std::string_view> fields_;
  std::deque<std::string> unquoted_;  // the text of fields with doubled quotation marks
};

}  // namespace tfjob::data
