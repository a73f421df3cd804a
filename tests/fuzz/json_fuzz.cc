// Checks the readers of JSON and YAML with arbitrary bytes. The first byte of an input selects how
// the remaining bytes are read: as JSON (j) or YAML (y).
//   - Reading never crashes.
//   - A value printed as JSON reads back as the same value.
//   - If the complete reader accepts a text, the fast reader, the splitter and MeasureJson agree
//     with it.
//   - The complete reader can read the parts of an odd object that ReadOddJson keeps.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "operator/kube/client/decode_odd.h"
#include "runtime/base/check.h"
#include "runtime/base/json.h"
#include "runtime/base/json_split.h"
#include "runtime/base/json_view.h"
#include "runtime/base/yaml.h"

namespace tfjob::fuzz {
namespace {

JsonSize SizeOfValue(const Json& value) {
  JsonSize size{.depth = 0, .values = 1};
  if (!value.is_structured()) return size;
  for (const Json& part : value) {
    const JsonSize inner = SizeOfValue(part);
    size.depth = std::max(size.depth, inner.depth);
    size.values += inner.values;
  }
  ++size.depth;
  return size;
}

void CheckParts(const Json& value, std::string_view text) {
  const JsonSize measured = MeasureJson(text);
  const JsonSize actual = SizeOfValue(value);
  ENFORCE(measured.depth == actual.depth, "the measured depth must be the depth");
  ENFORCE(measured.values >= actual.values, "there must be no more values than measured");
  const auto members = SplitJsonObject(text);
  const auto elements = SplitJsonArray(text);
  ENFORCE(members.ok() == value.is_object(), "an object must split, and nothing else");
  ENFORCE(elements.ok() == value.is_array(), "a list must split, and nothing else");
  if (members.ok()) ENFORCE(members->size() == value.size(), "a member is missing");
  if (!elements.ok()) return;
  ENFORCE(elements->size() == value.size(), "an element is missing");
  for (size_t i = 0; i < elements->size(); ++i) {
    const StatusOr<Json> element = ParseJson((*elements)[i], "element");
    ENFORCE(element.ok() && *element == value[i], "an element must read as in the list");
  }
}

void CheckJson(std::string_view text) {
  (void)MeasureJson(text);
  const StatusOr<kube::OddJson> odd = kube::ReadOddJson(text);
  if (odd.ok()) {
    ENFORCE(odd->object.is_object(), "an odd object must be an object");
    ENFORCE(ParseJson(PrintJson(odd->object), "odd").ok(), "what is kept must be readable");
  }
  JsonDocument document;
  const StatusOr<JsonView> view = document.Parse(text);
  const StatusOr<Json> value = ParseJson(text, "fuzz");
  if (!value.ok()) return;
  const StatusOr<Json> again = ParseJson(PrintJson(*value), "printed");
  ENFORCE(again.ok() && *again == *value, "a printed value must read as the same value");
  ENFORCE(!value->is_object() || odd.ok(), "an object must be readable as an odd one");
  if (view.ok()) ENFORCE(ToJson(*view) == *value, "the fast reader must read the same value");
  CheckParts(*value, text);
  (void)DescribeJson(*value);
}

void CheckYaml(std::string_view text) {
  const StatusOr<std::vector<Json>> documents = ParseYaml(text, "fuzz");
  if (!documents.ok()) return;
  for (const Json& document : *documents) {
    ENFORCE(!PrintYaml(document).empty(), "a printed document must say something");
  }
}

}  // namespace
}  // namespace tfjob::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] == 'j') tfjob::fuzz::CheckJson(rest);
  if (data[0] == 'y') tfjob::fuzz::CheckYaml(rest);
  return 0;
}
