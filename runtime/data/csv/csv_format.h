// Reads the records of CSV files when a batch needs them, so the files may be larger than memory.
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/status.h"
#include "runtime/data/records/record_format.h"

namespace tfjob::data {

struct CsvLayout {
  char delimiter = ',';
  bool header = true;  // the first record contains the names of the columns
  // If set, a field in quotation marks may contain line breaks, and blank lines are ignored.
  // Otherwise, every line is a record, and a blank line before another record is an error.
  bool quotes = true;
};

// Returns the beginning of a file, plain or gzipped, up to the end of its first record. The text is
// shorter if the file ends before that. Returns InvalidArgument if the record is too long.
StatusOr<std::string> FirstCsvRecord(const std::string& path, const CsvLayout& layout);

// The base class of formats whose records are those of CSV files. Parsers receive the text of a
// record, and possibly line breaks and records after it.
class CsvFormat : public RecordFormat {
 public:
  explicit CsvFormat(const CsvLayout& layout) : layout_(layout) {}

  // Returns DataLoss, with the file and the line, if a closing quotation mark is missing, if a
  // record is too long, or if there is a blank line where `quotes` does not allow it. Damage always
  // ends the scan, because the ends of the records after it are unknown.
  Status Scan(const RecordFiles& files, size_t file, RecordFileReader& reader, bool check,
              const Visitor& visitor) const final;
  StatusOr<std::string_view> Read(const RecordFiles& files, RecordFileReader& reader,
                                  const RecordPlace& place) const final;
  std::string Place(const RecordFiles& files, RecordFileReader& reader,
                    const RecordPlace& place) const final;

 private:
  const CsvLayout layout_;
};

}  // namespace tfjob::data
