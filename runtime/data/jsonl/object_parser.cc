#include "runtime/data/jsonl/object_parser.h"

#include <charconv>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/data/jsonl/parser_limits.h"

namespace tfjob::data {
namespace {

static_assert(RecordFileReader::kPadding >= JsonDocument::kPadding);

// Returns the expected type of a member, such as "a list of 3 numbers".
std::string Expected(const ExampleFeature& feature) {
  const Shape& shape = feature.shape;
  const char* const value = HasIds(feature) ? "string" : "number";
  if (shape.rank() == 0 || feature.tokens) return StrCat("a ", value);
  const char* const most = feature.variable ? "at most " : "";
  if (shape.rank() == 1) return StrCat("a list of ", most, shape.dim(0), " ", value, "s");
  const std::vector<int64_t>& dims = shape.dims();
  return StrCat("a list of ", most, shape.dim(0), " nested lists of ", value, "s of shape ",
                Shape({dims.begin() + 1, dims.end()}).ToString());
}

// Returns the value of a number or a boolean, or nullopt for other values.
std::optional<double> NumberOf(JsonView value) {
  if (const std::optional<double> number = value.IfDouble()) return number;
  return value.IfBool();
}

// Returns the shortest decimal form that reads back as the same number.
std::string NumberText(double number) {
  char text[32];
  return {text, std::to_chars(std::begin(text), std::end(text), number).ptr};
}

// Stores the numbers, or the ids of the strings, of one member.
class MemberStore {
 public:
  // `ids` is null unless the feature consists of ids.
  MemberStore(const ExampleFeature& feature, StringReader* ids, std::span<std::byte> elements)
      : feature_(feature), ids_(ids), elements_(elements) {}

  Status Store(JsonView member) {
    if (ids_ != nullptr) return StoreStrings(member);
    RETURN_IF_ERROR(StoreAxis(member, 0));
    const size_t bytes = stored_ * SizeOf(feature_.dtype);
    if (bytes < elements_.size()) FillMissing(feature_, elements_.subspan(bytes));
    return OkStatus();
  }

 private:
  Status StoreStrings(JsonView member) {
    ids_->Begin(elements_);
    RETURN_IF_ERROR(feature_.tokens ? StoreString(member) : StoreAxis(member, 0));
    return ids_->End();
  }

  Status StoreString(JsonView value) {
    if (!value.IsString()) return Unexpected(value.TypeName());
    ++stored_;
    return ids_->Add(value.Text());
  }

  // Stores a value that is nested in `axis` lists. Calls itself for the elements of a list.
  Status StoreAxis(JsonView value, size_t axis) {
    if (axis == static_cast<size_t>(feature_.shape.rank()))
      return ids_ != nullptr ? StoreString(value) : StoreNumber(value);
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
    // Do not convert integers to double first, because they would be rounded twice.
    if (const std::optional<int64_t> integer = value.IfInt()) {
      At<float>() = static_cast<float>(*integer);
      return OkStatus();
    }
    const std::optional<double> number = NumberOf(value);
    if (!number) return Unexpected(value.TypeName());
    const auto rounded = static_cast<float>(*number);
    if (!std::isfinite(rounded))
      return Unexpected(StrCat(NumberText(*number), ", which does not fit into float32"));
    At<float>() = rounded;
    return OkStatus();
  }

  Status StoreInteger(JsonView value) {
    if (const std::optional<int64_t> integer = value.IfInt()) {
      At<int64_t>() = *integer;
      return OkStatus();
    }
    const std::optional<double> number = NumberOf(value);
    if (!number) return Unexpected(value.TypeName());
    if (std::floor(*number) != *number || std::fabs(*number) >= 0x1p63)
      return Unexpected(StrCat(NumberText(*number), ", which is not an integer of 64 bits"));
    // Accept ".0" after integers, which some programs write. A double of 2^53 or more may be a
    // rounded integer.
    if (std::fabs(*number) >= 0x1p53)
      return Unexpected(StrCat(NumberText(*number), ", which may be rounded; such a large integer ",
                               "must be written without a decimal point or an exponent"));
    At<int64_t>() = static_cast<int64_t>(*number);
    return OkStatus();
  }

  // Returns the element to store next, and advances to the one after it.
  template <typename T>
  T& At() {
    return reinterpret_cast<T*>(elements_.data())[stored_++];
  }

  Status Unexpected(std::string_view got) const {
    return InvalidArgument("expected ", Expected(feature_), ", got ", got,
                           stored_ > 0
                               ? StrCat(" after ", stored_, ids_ != nullptr ? " string" : " number",
                                        stored_ == 1 ? "" : "s")
                               : std::string());
  }

  const ExampleFeature& feature_;
  StringReader* const ids_;
  const std::span<std::byte> elements_;
  size_t stored_ = 0;  // the number of stored numbers or strings
};

// Returns an error that explains why the line is not a JSON object.
Status NotAnObject(std::string_view line, const Status& error) {
  const std::string_view name = NotInJson(line);
  if (name.empty()) return DataLoss("expected a JSON object: ", Message(error));
  return DataLoss("expected a JSON object: ", name, " is not JSON; write null instead");
}

}  // namespace

StatusOr<JsonView> ParseObject(std::string_view line, JsonDocument& document) {
  StatusOr<JsonView> root = document.ParsePadded(line);
  if (absl::IsInvalidArgument(root.status())) {
    const std::optional<std::string> accepted = WithinParserLimits(line);
    const StatusOr<JsonView> second = accepted ? document.Parse(*accepted) : root;
    if (!second.ok() && !absl::IsInvalidArgument(second.status())) return second.status();
    if (!second.ok()) return NotAnObject(line, root.status());
    root = second;
  }
  RETURN_IF_ERROR(root.status());
  if (!root->IsObject()) return DataLoss("expected a JSON object, got ", root->TypeName());
  return root;
}

ObjectParser::ObjectParser(const std::vector<ExampleFeature>& features) {
  for (const ExampleFeature& feature : features)
    ids_.push_back(HasIds(feature) ? std::make_unique<StringReader>(feature) : nullptr);
}

Status ObjectParser::Parse(std::string_view record, ExampleRow& row) {
  ASSIGN_OR_RETURN(const JsonView root, ParseObject(record, document_));
  RETURN_IF_ERROR(root.ForEachMember([&](std::string_view name, JsonView member) -> Status {
    const std::optional<size_t> number = row.Find(name);
    if (!number || !member.present()) return OkStatus();
    const ExampleFeature& feature = row.feature(*number);
    const StatusOr<std::span<std::byte>> elements = row.Take(*number);
    const Status stored = elements.ok()
                              ? MemberStore(feature, ids_[*number].get(), *elements).Store(member)
                              : elements.status();
    return stored.ok() ? stored : Annotate(stored, StrCat("feature ", feature.name));
  }));
  return row.End(Expected);
}

}  // namespace tfjob::data
