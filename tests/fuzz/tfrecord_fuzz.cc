// Checks the reader of TFRecord files of tf.train.Example with arbitrary bytes. The first byte of
// an input selects how the remaining bytes are read: as an example (e) or as a file (f).
// records_property.h lists the properties of files. For an example:
//   - Reading never crashes, and never returns a value that is not in the bytes.
//   - The same features in an unusual encoding, for which there is no short cut, are read equally.
//   - The values do not depend on the examples that the same parser has read before.
#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/check.h"
#include "runtime/data/records/record_format.h"
#include "runtime/data/tfrecord/example.h"
#include "runtime/data/tfrecord/test_example.h"
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
    if (!visited.ok()) return;
    const std::vector<Feature> features = FeaturesOf(bytes_);
    const std::string unusual = InUnusualEncoding(features);
    ENFORCE(std::ranges::equal(features, FeaturesOf(unusual), AreEqual), "the same features");
  }

 private:
  using Feature = data::Feature;

  static std::vector<Feature> FeaturesOf(std::string_view example) {
    std::vector<Feature> features;
    const auto on_feature = [&](const Feature& feature) {
      features.push_back(feature);
      return OkStatus();
    };
    const auto on_steps = [](const data::FeatureSteps&) { return OkStatus(); };
    ENFORCE(data::VisitExample(example, {on_feature, on_steps}).ok(), "a valid example");
    return features;
  }

  static std::string InUnusualEncoding(const std::vector<Feature>& features) {
    using data::testing::WireField;
    std::string map;
    for (const Feature& feature : features) {
      const std::string list = WireField(static_cast<int>(feature.kind) + 1, feature.list);
      map += WireField(1, WireField(2, list + WireField(9, "")) + WireField(1, feature.name));
    }
    return WireField(1, map);
  }

  static bool AreEqual(const Feature& a, const Feature& b) {
    return a.name == b.name && a.kind == b.kind && a.list == b.list;
  }

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

// Reads examples with the features "a" and "b" one after the other, as a pipeline does.
class ExampleReader {
 public:
  // Returns the error, or "" and the values.
  std::pair<std::string, std::vector<std::byte>> Read(std::string_view example) {
    row_.Begin(0);
    const Status parsed = parser_->Parse(example, row_);
    if (!parsed.ok()) return {std::string(Message(parsed)), {}};
    std::vector<std::byte> values;
    for (const Tensor& tensor : tensors_)
      values.insert(values.end(), tensor.bytes().begin(), tensor.bytes().end());
    return {"", std::move(values)};
  }

 private:
  const std::vector<data::ExampleFeature> features_ = {
      {.name = "a", .shape = {2}, .variable = true},
      {.name = "b", .dtype = DType::kInt64, .shape = {2}, .variable = true}};
  std::vector<Tensor> tensors_ = {Tensor(DType::kFloat32, {1, 2}), Tensor(DType::kInt64, {1, 2})};
  const std::unique_ptr<const data::RecordFormat> format_ = data::TfRecordFormat();
  const std::unique_ptr<data::RecordParser> parser_ = format_->MakeParser(features_);
  data::ExampleRow row_{features_, tensors_};
};

void CheckReader(std::string_view bytes) {
  using data::testing::ExampleOf;
  const auto alone = ExampleReader().Read(bytes);
  const std::string a = data::testing::FloatFeature({1, 2}), b = data::testing::Int64Feature({3});
  const std::string examples[] = {ExampleOf({{"b", b}, {"a", a}}), ExampleOf({{"b", b}}),
                                  std::string(bytes)};
  ExampleReader reader;
  for (const std::string& before : examples) {
    (void)reader.Read(before);
    ENFORCE(reader.Read(bytes) == alone, "the values do not depend on earlier examples");
  }
}

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
  if (data[0] == 'e') {
    tfjob::fuzz::ExampleCheck(rest).Run();
    tfjob::fuzz::CheckReader(rest);
  }
  if (data[0] == 'f') tfjob::fuzz::CheckFile(rest);
  return 0;
}
