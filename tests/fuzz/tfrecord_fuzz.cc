// Checks the reader of TFRecord files of tf.train.Example with arbitrary bytes. The first byte of
// an input selects how the rest is read: as an example (e) or as a file (f). Reading an example
// never crashes, and gives no value that is not in the bytes; records_property.h lists the
// properties of files.
#include <string_view>

#include "runtime/base/check.h"
#include "runtime/data/tfrecord/example.h"
#include "runtime/data/tfrecord/tfrecord.h"
#include "tests/fuzz/records_property.h"

namespace tfjob::fuzz {
namespace {

void CheckExample(std::string_view bytes) {
  bool lists_are_valid = true;
  const Status visited = data::VisitFeatures(bytes, [&](const data::Feature& feature) {
    const std::string_view list = feature.list;
    ENFORCE(list.empty() || (list.data() >= bytes.data() &&
                             list.data() + list.size() <= bytes.data() + bytes.size()),
            "a list is part of the example");
    const StatusOr<size_t> counts[] = {data::ReadBytesList(list, {}), data::ReadFloatList(list, {}),
                                       data::ReadInt64List(list, {})};
    for (const StatusOr<size_t>& count : counts)
      ENFORCE(!count.ok() || *count <= list.size(), "a value takes at least one byte");
    lists_are_valid &= counts[static_cast<int>(feature.kind)].ok();
    return OkStatus();
  });
  ENFORCE(data::CheckExample(bytes).ok() == (visited.ok() && lists_are_valid),
          "an example is valid if its features and their lists are");
}

void CheckFile(std::string_view bytes) {
  CheckRecordFile(
      bytes,
      {.features = {{.name = "f", .shape = {2}, .variable = true},
                    {.name = "i", .dtype = DType::kInt64, .shape = {2}, .variable = true},
                    {.name = "b", .dtype = DType::kUInt8, .raw = true, .shape = {2}}},
       .fields = {{"f", "f"}, {"i", "i"}, {"b", "b"}}},
      data::OpenTfRecords, "tfrecord");
}

}  // namespace
}  // namespace tfjob::fuzz

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] == 'e') tfjob::fuzz::CheckExample(rest);
  if (data[0] == 'f') tfjob::fuzz::CheckFile(rest);
  return 0;
}
