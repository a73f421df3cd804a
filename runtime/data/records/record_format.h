// Defines the interface of record formats: how a file is scanned for records, how a record is read,
// and how its values are converted to an example.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "runtime/base/status.h"
#include "runtime/data/records/example_row.h"
#include "runtime/data/records/record_files.h"
#include "runtime/data/records/record_index.h"

namespace tfjob::data {

// Reads the values of records. Only one thread may use a parser.
class RecordParser {
 public:
  virtual ~RecordParser() = default;
  // Stores the values of a record in `row`. Returns InvalidArgument if the record is an example but
  // lacks values that the row requires. Returns DataLoss if the record is not an example, or if an
  // image in it is damaged.
  virtual Status Parse(std::string_view record, ExampleRow& row) = 0;
};

// Finds and reads the records of one format. Immutable.
class RecordFormat : public RecordScanner {
 public:
  // Returns a record without its framing. The view stays valid until the reader's next call.
  // Returns DataLoss, with the file and the place, if the record is damaged.
  virtual StatusOr<std::string_view> Read(const RecordFiles& files, RecordFileReader& reader,
                                          const RecordPlace& place) const = 0;
  // Returns the place of a record for messages, such as "a.jsonl: line 7". May read the file with
  // `reader`, for example to count its lines.
  virtual std::string Place(const RecordFiles& files, RecordFileReader& reader,
                            const RecordPlace& place) const = 0;
  // Returns a parser for these features. The parser may keep a reference to `features`.
  virtual std::unique_ptr<RecordParser> MakeParser(
      const std::vector<ExampleFeature>& features) const = 0;
};

}  // namespace tfjob::data
