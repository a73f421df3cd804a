// Checks the reader of TFRecord files of tf.train.Example with arbitrary bytes. The first byte of
// an input selects how the remaining bytes are read: as an example (e) or as a file (f). Reading an
// example never crashes, and never returns a value that is not in the bytes. records_property.h
// lists the properties of files.
#include <string_view>

#include "runtime/base/check.h"
#include "runtime/data/tfrecord/example.h"
#include "runtime/data/tfrecord/tfrecord.h"
#include "tests/fuzz/records_property.h"

namespace tfjob::fuzz {
namespace {

class ExampleCheck {
 public:
  explicit ExampleCheck(std::string_view bytes) : bytes_(bytes) {}

  void Run() {
    const auto on_feature = [this](const Feature& feature) { return CheckList(feature); };
    const auto on_steps = [&](const data::FeatureSteps& steps) {
      CheckPart(steps.steps);
      return data::VisitSteps(steps, on_feature);
    };
    const Status visited = data::VisitExample(bytes_, {on_feature, on_steps});
    ENFORCE(data::CheckExample(bytes_).ok() == (visited.ok() && lists_are_valid_),
            "an example is valid if its features and their lists are");
  }

 private:
  using Feature = data::Feature;

  void CheckPart(std::string_view part) const {
    ENFORCE(part.empty() || (part.data() >= bytes_.data() &&
                             part.data() + part.size() <= bytes_.data() + bytes_.size()),
            "a list is part of the example");
  }

  Status CheckList(const Feature& feature) {
    const std::string_view list = feature.list;
    CheckPart(list);
    const StatusOr<size_t> counts[] = {data::ReadBytesList(list, {}), data::ReadFloatList(list, {}),
                                       data::ReadInt64List(list, {})};
    for (const StatusOr<size_t>& count : counts)
      ENFORCE(!count.ok() || *count <= list.size(), "a value takes at least one byte");
    lists_are_valid_ &= counts[static_cast<int>(feature.kind)].ok();
    return OkStatus();
  }

  const std::string_view bytes_;
  bool lists_are_valid_ = true;
};

void CheckFile(std::string_view bytes) {
  CheckRecordFile(
      bytes,
      {.features = {{.name = "f", .shape = {2}, .variable = true},
                    {.name = "i", .dtype = DType::kInt64, .shape = {2}, .variable = true},
                    {.name = "b", .dtype = DType::kUInt8, .raw = true, .shape = {2}},
                    {.name = "s", .shape = {3, 2}, .variable = true, .sequence = true},
                    {.name = "t",
                     .dtype = DType::kUInt8,
                     .raw = true,
                     .shape = {2, 3},
                     .variable = true,
                     .sequence = true}},
       .fields = {{"f", "f"}, {"i", "i"}, {"b", "b"}, {"s", "s"}, {"t", "t"}}},
      data::OpenTfRecords, "tfrecord");
}

}  // namespace
}  // namespace tfjob::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] == 'e') tfjob::fuzz::ExampleCheck(rest).Run();
  if (data[0] == 'f') tfjob::fuzz::CheckFile(rest);
  return 0;
}
