// Reads the values of JSON objects.
#pragma once

#include <string_view>

#include "runtime/base/json_view.h"
#include "runtime/base/status.h"
#include "runtime/data/records/record_format.h"

namespace tfjob::data {

// Parses one line. Returns DataLoss if it is not a JSON object, and ResourceExhausted if there is
// not enough memory. Values that JsonDocument refuses are replaced (WithinParserLimits). The view
// stays valid until the document parses another text. RecordFileReader::kPadding readable bytes
// must follow the line.
StatusOr<JsonView> ParseObject(std::string_view line, JsonDocument& document);

// Owned by one thread.
class ObjectParser : public RecordParser {
 public:
  Status Parse(std::string_view record, ExampleRow& row) override;

 private:
  JsonDocument document_;
};

}  // namespace tfjob::data
