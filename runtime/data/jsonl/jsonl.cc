#include "runtime/data/jsonl/jsonl.h"

#include "runtime/base/check.h"
#include "runtime/base/json_view.h"
#include "runtime/data/jsonl/line_format.h"
#include "runtime/data/jsonl/object_parser.h"

namespace tfjob::data {
namespace {

class JsonLines : public LineFormat {
 public:
  std::unique_ptr<RecordParser> MakeParser(
      const std::vector<ExampleFeature>& features) const override {
    for (const ExampleFeature& feature : features) {
      const bool number = feature.dtype == DType::kFloat32 || feature.dtype == DType::kInt64;
      ENFORCE(number && !feature.raw, "the features of JSON lines are numbers or ids");
    }
    return std::make_unique<ObjectParser>(features);
  }

 private:
  std::string_view LineName() const override { return "a JSON object"; }
  LineCheck MakeCheck() const override {
    return [document = std::make_shared<JsonDocument>()](std::string_view line) {
      return ParseObject(line, *document).status();
    };
  }
};

}  // namespace

std::unique_ptr<const RecordFormat> JsonLinesFormat() {
  return std::make_unique<const JsonLines>();
}

StatusOr<std::shared_ptr<const Source>> OpenJsonLines(const RecordOptions& options) {
  return OpenRecords(JsonLinesFormat(), options);
}

}  // namespace tfjob::data
