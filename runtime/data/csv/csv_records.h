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

// Reads the records in a string one by one. The string must outlive this object.
class CsvRecords {
 public:
  // Ignores a byte order mark at the beginning of the text.
  CsvRecords(std::string_view text, char delimiter);

  // Reads the next record, skipping empty lines before it. Returns false at the end of the text.
  // Returns InvalidArgument, with the line, if a closing quotation mark is missing or is followed
  // by other text.
  StatusOr<bool> Next();

  // Returns the fields of the record that was read last. White space around fields is stripped.
  // Valid until the next call of Next.
  const std::vector<std::string_view>& fields() const { return fields_; }
  // Returns the number of the record's first line, counted from 1.
  int64_t line() const { return line_; }

 private:
  // Whether another field follows, or the record ends.
  enum class End { kField, kRecord };

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

}  // namespace tfjob::data
