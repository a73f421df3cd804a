// Checks the reader of TFRecord files of tf.train.Example with arbitrary bytes. The first byte of
// an input selects how the rest is read: as an example (e) or as a file (f).
//   - Reading never crashes, and gives no value that is not in the bytes.
//   - The records that remain when damaged ones are left out can be read without finding damage.
//   - If nothing is damaged, the file has the same records whether or not damage is skipped.
#include <sys/mman.h>
#include <unistd.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/check.h"
#include "runtime/data/pipeline.h"
#include "runtime/data/tfrecord/example.h"
#include "runtime/data/tfrecord/tfrecord.h"

namespace tfjob::fuzz {
namespace {

// A file in memory that contains the given bytes and has a path.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view bytes) : file_(memfd_create("fuzz", 0)) {
    ENFORCE(file_ >= 0, "memfd_create");
    const ssize_t written = write(file_, bytes.data(), bytes.size());
    ENFORCE(written == static_cast<ssize_t>(bytes.size()), "write");
  }
  ~MemoryFile() { close(file_); }
  std::string path() const { return StrCat("/proc/self/fd/", file_); }

 private:
  int file_;
};

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

// Reads all examples. Returns their number, or the error.
StatusOr<int64_t> ReadAll(const std::shared_ptr<const data::Source>& source) {
  data::PipelineOptions options{.batch_size = 3, .epochs = 1, .prefetch = 0, .most_listed = 2};
  for (const data::Field& field : source->fields())
    options.columns.push_back(
        {.name = field.name, .array = field.name, .dtype = field.dtype, .shape = field.shape});
  ASSIGN_OR_RETURN(const auto pipeline, data::Pipeline::Create(source, options));
  int64_t count = 0;
  while (const data::Batch* batch = pipeline->Next()) count += batch->size();
  RETURN_IF_ERROR(pipeline->status());
  return count;
}

void CheckFile(std::string_view bytes) {
  const MemoryFile file(bytes);
  data::RecordOptions options{
      .files = {file.path()},
      .features = {{.name = "f", .shape = {2}, .variable = true},
                   {.name = "i", .dtype = DType::kInt64, .shape = {2}, .variable = true},
                   {.name = "b", .dtype = DType::kUInt8, .raw = true, .shape = {2}}},
      .fields = {{"f", "f"}, {"i", "i"}, {"b", "b"}},
      .most_indexed_in_memory = 2};
  const auto strict = data::OpenTfRecords(options);
  options.skip_damaged = true;
  const auto lenient = data::OpenTfRecords(options);
  if (!lenient.ok()) {
    ENFORCE(!strict.ok() || !ReadAll(*strict).ok(), "a file without intact records is damaged");
    return;
  }
  const StatusOr<int64_t> left = ReadAll(*lenient);
  ENFORCE(left.ok() ? *left == (*lenient)->size() : !absl::IsDataLoss(left.status()),
          "what is left is not damaged");
  if (!(*lenient)->LeftOut().empty()) return;
  ENFORCE(strict.ok() && (*strict)->size() == (*lenient)->size(), "nothing is damaged");
  const StatusOr<int64_t> all = ReadAll(*strict);
  ENFORCE(all.ok() == left.ok(), "nothing is damaged");
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
