#include "runtime/data/tfrecord/tfrecord.h"

#include <cstring>
#include <optional>
#include <utility>

#include "runtime/data/tfrecord/example.h"
#include "runtime/data/tfrecord/framing.h"

namespace tfjob::data {
namespace {

ListKind KindOf(const ExampleFeature& feature) {
  if (feature.raw) return ListKind::kBytes;
  return feature.dtype == DType::kFloat32 ? ListKind::kFloat : ListKind::kInt64;
}

// Describes what the list of a feature must contain.
std::string Describe(const ExampleFeature& feature) {
  if (feature.raw) return "one string in a bytes_list";
  return StrCat(CountText(feature), " in ", Name(KindOf(feature)));
}

// Stores the values of a list in `to`, which is exactly as large as the feature's shape requires.
Status StoreRaw(const ExampleFeature& expected, std::string_view list, std::span<std::byte> to) {
  std::string_view bytes;
  ASSIGN_OR_RETURN(const size_t count, ReadBytesList(list, {&bytes, 1}));
  if (count != 1) return InvalidArgument("expected one string in a bytes_list, got ", count);
  if (bytes.size() != to.size()) {
    return InvalidArgument("expected a string of ", to.size(), " bytes, for ",
                           tfjob::Name(expected.dtype), " of shape ", expected.shape.ToString(),
                           ", got ", bytes.size(), " bytes");
  }
  if (!bytes.empty()) std::memcpy(to.data(), bytes.data(), bytes.size());
  return OkStatus();
}

Status StoreList(const ExampleFeature& expected, const Feature& found, std::span<std::byte> to) {
  if (found.kind != KindOf(expected)) {
    return InvalidArgument("expected ", Describe(expected), ", got ", Name(found.kind));
  }
  if (expected.raw) return StoreRaw(expected, found.list, to);
  const auto elements = static_cast<size_t>(expected.shape.num_elements());
  const StatusOr<size_t> count =
      found.kind == ListKind::kFloat
          ? ReadFloatList(found.list, {reinterpret_cast<float*>(to.data()), elements})
          : ReadInt64List(found.list, {reinterpret_cast<int64_t*>(to.data()), elements});
  RETURN_IF_ERROR(count.status());
  if (*count > elements || (*count < elements && !expected.variable))
    return InvalidArgument("expected ", Describe(expected), ", got ", *count);
  if (*count < elements) FillMissing(expected, to.subspan(*count * SizeOf(expected.dtype)));
  return OkStatus();
}

// Returns DataLoss if the payload is not an example.
Status CheckPayload(std::string_view payload) {
  const Status example = CheckExample(payload);
  if (example.ok()) return example;
  return DataLoss("it is not a tf.train.Example: ", Message(example));
}

class ExampleParser : public RecordParser {
 public:
  Status Parse(std::string_view record, ExampleRow& row) override {
    const Status stored = Store(record, row);
    if (stored.ok()) return stored;
    RETURN_IF_ERROR(CheckPayload(record));
    return stored;
  }

 private:
  static Status Store(std::string_view example, ExampleRow& row) {
    RETURN_IF_ERROR(VisitFeatures(example, [&](const Feature& feature) -> Status {
      const std::optional<size_t> number = row.Find(feature.name);
      if (!number) return OkStatus();
      ASSIGN_OR_RETURN(const std::span<std::byte> elements, row.Take(*number));
      return StoreList(row.feature(*number), feature, elements);
    }));
    return row.End(Describe);
  }
};

class ExampleFormat : public RecordFormat {
 public:
  Status Scan(const RecordFiles& files, size_t file, RecordFileReader& reader, bool check,
              const Visitor& visitor) const override {
    const PayloadCheck check_payload = CheckPayload;
    return ScanFramedRecords(files, file, reader, check ? &check_payload : nullptr, visitor);
  }
  StatusOr<std::string_view> Read(const RecordFiles& files, RecordFileReader& reader,
                                  const RecordPlace& place) const override {
    return ReadFramedRecord(files, reader, place);
  }
  std::string Place(const RecordFiles& files, RecordFileReader&,
                    const RecordPlace& place) const override {
    return files.files()[place.file].Place(place.offset);
  }
  std::unique_ptr<RecordParser> MakeParser(const std::vector<ExampleFeature>&) const override {
    return std::make_unique<ExampleParser>();
  }
};

}  // namespace

std::unique_ptr<const RecordFormat> TfRecordFormat() {
  return std::make_unique<const ExampleFormat>();
}

StatusOr<std::shared_ptr<const Source>> OpenTfRecords(const RecordOptions& options) {
  return OpenRecords(TfRecordFormat(), options);
}

}  // namespace tfjob::data
