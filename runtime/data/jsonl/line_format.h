// Defines the base class of all formats whose records are lines of text files. Lines end with "\n"
// or "\r\n", blank lines are ignored, and a file may start with a UTF-8 byte order mark.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "runtime/base/status.h"
#include "runtime/data/records/record_format.h"

namespace tfjob::data {

// Returns DataLoss if a line is damaged. Only one thread may call the function.
using LineCheck = std::function<Status(std::string_view line)>;

class LineFormat : public RecordFormat {
 public:
  Status Scan(const RecordFiles& files, size_t file, RecordFileReader& reader, bool check,
              const Visitor& visitor) const final;
  StatusOr<std::string_view> Read(const RecordFiles& files, RecordFileReader& reader,
                                  const RecordPlace& place) const final;
  std::string Place(const RecordFiles& files, RecordFileReader& reader,
                    const RecordPlace& place) const final;

 private:
  // Returns the expected content of a line, such as "a JSON object".
  virtual std::string_view LineName() const = 0;
  // Returns a function that checks the content of a line, or null if every line counts as intact.
  // At least RecordFileReader::kPadding readable bytes follow each line that is passed to the
  // function.
  virtual LineCheck MakeCheck() const = 0;
};

}  // namespace tfjob::data
