#include "runtime/data/jsonl/object_parser.h"

#include <cmath>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace tfjob::data {
namespace {

static_assert(RecordFileReader::kPadding >= JsonDocument::kPadding);

// Returns what a member must be, such as "a list of 3 numbers".
std::string Expected(const ExampleFeature& feature) {
  const Shape& shape = feature.shape;
  if (shape.rank() == 0) return "a number";
  const char* const most = feature.variable ? "at most " : "";
  if (shape.rank() == 1) return StrCat("a list of ", most, shape.dim(0), " numbers");
  const std::vector<int64_t>& dims = shape.dims();
  return StrCat("a list of ", most, shape.dim(0), " nested lists of numbers of shape ",
                Shape({dims.begin() + 1, dims.end()}).ToString());
}

// Returns the value of a number or a boolean.
StatusOr<double> NumberOf(JsonView value) {
  const StatusOr<double> number = value.Double();
  if (number.ok()) return number;
  ASSIGN_OR_RETURN(const bool truth, value.Bool());
  return truth ? 1 : 0;
}

// Stores the numbers of one member.
class NumberStore {
 public:
  NumberStore(const ExampleFeature& feature, std::span<std::byte> elements)
      : feature_(feature), elements_(elements) {}

  Status Store(JsonView member) {
    RETURN_IF_ERROR(StoreAxis(member, 0));
    const size_t bytes = stored_ * SizeOf(feature_.dtype);
    if (bytes < elements_.size()) FillMissing(feature_, elements_.subspan(bytes));
    return OkStatus();
  }

 private:
  // Stores the value of one place along the first `axis` axes.
  Status StoreAxis(JsonView value, size_t axis) {
    if (axis == static_cast<size_t>(feature_.shape.rank())) return StoreNumber(value);
    if (!value.IsArray()) return Unexpected(value.TypeName());
    const int64_t length = feature_.shape.dim(static_cast<int>(axis));
    int64_t count = 0;
    RETURN_IF_ERROR(value.ForEachElement([&](JsonView element) {
      return ++count > length ? OkStatus() : StoreAxis(element, axis + 1);
    }));
    if (count == length || (count < length && feature_.variable && axis == 0)) return OkStatus();
    return Unexpected(StrCat("a list of ", count));
  }

  Status StoreNumber(JsonView value) {
    return feature_.dtype == DType::kFloat32 ? StoreFloat(value) : StoreInteger(value);
  }

  Status StoreFloat(JsonView value) {
    const StatusOr<double> number = NumberOf(value);
    if (!number.ok()) return Unexpected(value.TypeName());
    const auto rounded = static_cast<float>(*number);
    if (!std::isfinite(rounded))
      return Unexpected(StrCat(*number, ", which does not fit into float32"));
    At<float>() = rounded;
    return OkStatus();
  }

  Status StoreInteger(JsonView value) {
    const StatusOr<int64_t> integer = value.Int();
    if (integer.ok()) {
      At<int64_t>() = *integer;
      return OkStatus();
    }
    const StatusOr<double> number = NumberOf(value);
    if (!number.ok()) return Unexpected(value.TypeName());
    // Some writers add ".0" to integers. Beyond 2^53, a double may be a rounded integer.
    if (std::floor(*number) != *number || std::fabs(*number) > 0x1p53)
      return Unexpected(StrCat(*number, ", which is not an integer of 64 bits"));
    At<int64_t>() = static_cast<int64_t>(*number);
    return OkStatus();
  }

  // Returns the next element.
  template <typename T>
  T& At() {
    return reinterpret_cast<T*>(elements_.data())[stored_++];
  }

  Status Unexpected(std::string_view got) const {
    return InvalidArgument("expected ", Expected(feature_), ", got ", got,
                           stored_ > 0
                               ? StrCat(" after ", stored_, stored_ == 1 ? " number" : " numbers")
                               : std::string());
  }

  const ExampleFeature& feature_;
  const std::span<std::byte> elements_;
  size_t stored_ = 0;
};

}  // namespace

StatusOr<JsonView> ParseObject(std::string_view line, JsonDocument& document) {
  const StatusOr<JsonView> root = document.ParsePadded(line);
  if (!root.ok() && !absl::IsInvalidArgument(root.status())) return root.status();
  if (!root.ok()) return DataLoss("expected a JSON object: ", Message(root.status()));
  if (!root->IsObject()) return DataLoss("expected a JSON object, got ", root->TypeName());
  return *root;
}

Status ObjectParser::Parse(std::string_view record, ExampleRow& row) {
  ASSIGN_OR_RETURN(const JsonView root, ParseObject(record, document_));
  RETURN_IF_ERROR(root.ForEachMember([&](std::string_view name, JsonView member) -> Status {
    const std::optional<size_t> number = row.Find(name);
    if (!number || !member.present()) return OkStatus();
    const ExampleFeature& feature = row.feature(*number);
    const StatusOr<std::span<std::byte>> elements = row.Take(*number);
    const Status stored =
        elements.ok() ? NumberStore(feature, *elements).Store(member) : elements.status();
    return stored.ok() ? stored : Annotate(stored, StrCat("feature ", feature.name));
  }));
  return row.End(Expected);
}

}  // namespace tfjob::data
