// Parses JSON objects, and reads the values of their members.
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
// not enough memory. Replaces values that are valid JSON but that JsonDocument rejects
// (WithinParserLimits). The view stays valid until the document is used to parse another line. At
// least RecordFileReader::kPadding readable bytes must follow the line.
StatusOr<JsonView> ParseObject(std::string_view line, JsonDocument& document);

// Stores the values of JSON objects' members in rows. Only one thread may use a parser.
class ObjectParser : public RecordParser {
 public:
  // `features` must outlive the parser.
  explicit ObjectParser(const std::vector<ExampleFeature>& features);

  Status Parse(std::string_view record, ExampleRow& row) override;

 private:
  JsonDocument document_;
  std::vector<std::unique_ptr<StringReader>> ids_;  // one per feature; null if it has no ids
};

}  // namespace tfjob::data
