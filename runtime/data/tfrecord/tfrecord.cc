#include "runtime/data/tfrecord/tfrecord.h"

#include <cstring>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/data/images/decode/image_reader.h"
#include "runtime/data/records/string_reader.h"
#include "runtime/data/tfrecord/example.h"
#include "runtime/data/tfrecord/framing.h"

namespace tfjob::data {
namespace {

ListKind KindOf(const ExampleFeature& feature) {
  if (feature.raw || feature.image || HasIds(feature)) return ListKind::kBytes;
  return feature.dtype == DType::kFloat32 ? ListKind::kFloat : ListKind::kInt64;
}

// Returns the feature for a single step of a sequence. Returns features that are not sequences
// unchanged.
ExampleFeature StepOf(const ExampleFeature& feature) {
  if (!feature.sequence) return feature;
  const std::vector<int64_t>& dims = feature.shape.dims();
  ExampleFeature step = feature;
  step.shape = Shape({dims.begin() + 1, dims.end()});
  step.variable = step.sequence = false;
  return step;
}

// Describes the required content of a feature's list.
std::string Describe(const ExampleFeature& feature) {
  if (feature.sequence)
    return StrCat("at most ", feature.shape.dim(0), " steps of ", Describe(StepOf(feature)));
  if (feature.raw || feature.image || feature.tokens) return "one string in a bytes_list";
  return StrCat(CountText(feature), " in ", Name(KindOf(feature)));
}

// Stores the bytes of a `raw` string as elements in `to`.
Status StoreString(const ExampleFeature& expected, std::string_view bytes,
                   std::span<std::byte> to) {
  if (bytes.size() != to.size()) {
    return InvalidArgument("expected a string of ", to.size(), " bytes, for ",
                           tfjob::Name(expected.dtype), " of shape ", expected.shape.ToString(),
                           ", got ", bytes.size(), " bytes");
  }
  if (!bytes.empty()) std::memcpy(to.data(), bytes.data(), bytes.size());
  return OkStatus();
}

// Describes how a feature is read. Determined once per feature.
struct Reading {
  ListKind kind;        // KindOf(the feature)
  ExampleFeature step;  // StepOf(the feature)
  size_t step_elements = 0;
  std::unique_ptr<ImageReader> images = nullptr;  // null unless the feature is an image
  // Null unless the feature consists of ids of strings.
  std::unique_ptr<StringReader> ids = nullptr;

  static Reading Of(const ExampleFeature& feature) {
    Reading reading{.kind = KindOf(feature), .step = StepOf(feature)};
    reading.step_elements = static_cast<size_t>(reading.step.shape.num_elements());
    if (feature.image) reading.images = std::make_unique<ImageReader>(*feature.image);
    if (HasIds(feature)) reading.ids = std::make_unique<StringReader>(feature);
    return reading;
  }
};

// Reads one feature, or one sequence, of one example.
class FeatureReader {
 public:
  // `to` must have the size that the shape of `expected` requires.
  FeatureReader(const ExampleFeature& expected, const Reading& reading, std::span<std::byte> to)
      : expected_(expected), reading_(reading), to_(to) {}

  // Reads a feature. If a sequence is expected, the list must contain the values of all steps, one
  // step after the other.
  Status Read(const Feature& found) const {
    if (!found.has_list || found.kind != reading_.kind) return WrongKind(expected_, found);
    if (reading_.ids != nullptr) return ReadIds(found.list);
    if (found.kind == ListKind::kBytes) return ReadStrings(found.list);
    return ReadNumbers(expected_, found, to_);
  }

  // Reads a feature list, with one feature per step.
  Status Read(const FeatureSteps& found) const {
    if (reading_.ids != nullptr) {
      return InvalidArgument("expected ", Describe(expected_), ", got a list of steps; lists of ",
                             "steps are supported for numbers and decode_raw only");
    }
    if (!expected_.sequence) {
      return InvalidArgument("expected ", Describe(expected_), ", got a list of steps; set shape ",
                             "(of one step) and max_length");
    }
    int64_t count = 0;
    RETURN_IF_ERROR(VisitSteps(found, [&](const Feature& feature) -> Status {
      if (count++ >= steps()) return OkStatus();
      const ExampleFeature& step = reading_.step;
      if (!feature.has_list || feature.kind != reading_.kind) return WrongKind(step, feature);
      const std::span<std::byte> to = Step(count - 1);
      return step.raw ? ReadOneString(feature.list, to) : ReadNumbers(step, feature, to);
    }));
    return End(count);
  }

 private:
  static Status WrongKind(const ExampleFeature& expected, const Feature& found) {
    if (!found.has_list) return InvalidArgument("expected a list of values, got none");
    return InvalidArgument("expected ", Describe(expected), ", got ", Name(found.kind));
  }

  int64_t steps() const { return expected_.sequence ? expected_.shape.dim(0) : 1; }
  std::span<std::byte> Step(int64_t number) const {
    const size_t bytes = to_.size() / static_cast<size_t>(steps());
    return to_.subspan(static_cast<size_t>(number) * bytes, bytes);
  }

  // Checks the number of steps, and fills in those that are missing.
  Status End(int64_t count) const {
    if (count > steps()) return InvalidArgument("expected ", Describe(expected_), ", got ", count);
    if (count < steps())
      FillMissing(expected_, to_.subspan(static_cast<size_t>(count) * Step(0).size()));
    return OkStatus();
  }

  Status ReadNumbers(const ExampleFeature& expected, const Feature& found,
                     std::span<std::byte> to) const {
    const bool floats = found.kind == ListKind::kFloat;
    const size_t size = floats ? sizeof(float) : sizeof(int64_t);
    const size_t elements = to.size() / size;
    const StatusOr<size_t> count =
        floats ? ReadFloatList(found.list, {reinterpret_cast<float*>(to.data()), elements})
               : ReadInt64List(found.list, {reinterpret_cast<int64_t*>(to.data()), elements});
    if (!count.ok()) return count.status();
    if (*count == elements) return OkStatus();
    const bool whole = !expected.sequence || *count % reading_.step_elements == 0;
    if (*count > elements || !expected.variable || !whole)
      return InvalidArgument("expected ", Describe(expected), ", got ", *count,
                             expected.sequence ? " values" : "");
    FillMissing(expected, to.subspan(*count * size));
    return OkStatus();
  }

  Status ReadOneString(std::string_view list, std::span<std::byte> to) const {
    std::string_view bytes;
    ASSIGN_OR_RETURN(const size_t count, ReadBytesList(list, {&bytes, 1}));
    if (count != 1) return InvalidArgument("expected one string in a bytes_list, got ", count);
    if (reading_.images == nullptr) return StoreString(reading_.step, bytes, to);
    return reading_.images->Read(bytes,
                                 {reinterpret_cast<float*>(to.data()), to.size() / sizeof(float)});
  }

  Status ReadIds(std::string_view list) const {
    StringReader& ids = *reading_.ids;
    ids.Begin(to_);
    RETURN_IF_ERROR(
        VisitBytesList(list, [&ids](std::string_view string) { return ids.Add(string); }));
    return ids.End();
  }

  Status ReadStrings(std::string_view list) const {
    if (!expected_.sequence) return ReadOneString(list, to_);
    ASSIGN_OR_RETURN(const size_t count, ReadBytesList(list, {}));
    if (static_cast<int64_t>(count) > steps()) return End(static_cast<int64_t>(count));
    std::vector<std::string_view> strings(count);
    RETURN_IF_ERROR(ReadBytesList(list, strings).status());
    for (size_t i = 0; i < count; ++i)
      RETURN_IF_ERROR(StoreString(reading_.step, strings[i], Step(static_cast<int64_t>(i))));
    return End(static_cast<int64_t>(count));
  }

  const ExampleFeature& expected_;
  const Reading& reading_;
  const std::span<std::byte> to_;
};

// Returns DataLoss if the payload is not an example, or if one of its lists cannot be read.
Status CheckPayload(std::string_view payload) {
  const Status example = CheckExample(payload);
  if (example.ok()) return example;
  return DataLoss("it is not a tf.train.Example or SequenceExample: ", Message(example));
}

class ExampleParser : public RecordParser {
 public:
  explicit ExampleParser(const std::vector<ExampleFeature>& features) {
    for (const ExampleFeature& feature : features) readings_.push_back(Reading::Of(feature));
  }

  Status Parse(std::string_view record, ExampleRow& row) override {
    const Status stored = Store(record, row);
    if (stored.ok()) return stored;
    RETURN_IF_ERROR(CheckPayload(record));
    return stored;
  }

 private:
  Status Store(std::string_view example, ExampleRow& row) const {
    // Reads a Feature or a FeatureSteps if the row has a feature of the same name.
    const auto read = [&](const auto& found) -> Status {
      const std::optional<size_t> number = row.Find(found.name);
      if (!number) return OkStatus();
      ASSIGN_OR_RETURN(const std::span<std::byte> elements, row.Take(*number));
      return FeatureReader(row.feature(*number), readings_[*number], elements).Read(found);
    };
    RETURN_IF_ERROR(VisitExample(example, {read, read}));
    return row.End(Describe);
  }

  std::vector<Reading> readings_;  // one per feature
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
  std::unique_ptr<RecordParser> MakeParser(
      const std::vector<ExampleFeature>& features) const override {
    return std::make_unique<ExampleParser>(features);
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
