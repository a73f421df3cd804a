// Reads the values of JSON objects.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "runtime/base/json_view.h"
#include "runtime/base/status.h"
#include "runtime/data/records/record_format.h"
#include "runtime/data/records/string_reader.h"

namespace tfjob::data {

// Parses one line. Returns DataLoss if it is not a JSON object, and ResourceExhausted if there is
// not enough memory. Values that JsonDocument refuses are replaced (WithinParserLimits). The view
// stays valid until the document parses another text. RecordFileReader::kPadding readable bytes
// must follow the line.
StatusOr<JsonView> ParseObject(std::string_view line, JsonDocument& document);

// Owned by one thread.
class ObjectParser : public RecordParser {
 public:
  // `features` must outlive the parser.
  explicit ObjectParser(const std::vector<ExampleFeature>& features);

  Status Parse(std::string_view record, ExampleRow& row) override;

 private:
  JsonDocument document_;
  std::vector<std::unique_ptr<StringReader>> ids_;  // by feature: null unless it consists of ids
};

}  // namespace tfjob::data
