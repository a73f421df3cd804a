#include "runtime/base/json_view.h"

#include <simdjson.h>

#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

namespace tfjob {
namespace {

namespace dom = simdjson::dom;

// A parser whose capacity is larger than this is replaced if the next input is shorter than a
// quarter of the capacity.
constexpr size_t kKeptCapacity = size_t{1} << 20;
constexpr size_t kSmallestCapacity = 16 << 10;

static_assert(sizeof(dom::element) == 16 && std::is_trivially_copyable_v<dom::element>);
static_assert(JsonDocument::kPadding >= simdjson::SIMDJSON_PADDING);

dom::element ElementOf(const unsigned char* bytes) {
  dom::element element;
  std::memcpy(static_cast<void*>(&element), bytes, sizeof(element));
  return element;
}

Status NoMemory(std::string_view text) {
  return ResourceExhausted("no memory for ", text.size(), " bytes of JSON");
}

// Returns the value of an element of this type, or nullopt.
template <typename T>
std::optional<T> ValueOf(bool present, const unsigned char* bytes) {
  T value{};
  if (!present || ElementOf(bytes).get(value) != simdjson::SUCCESS) return std::nullopt;
  return value;
}

Json Build(const dom::element& element) {
  switch (element.type()) {
    case dom::element_type::OBJECT: {
      Json object = Json::object();
      for (const dom::key_value_pair member : dom::object(element)) {
        object.emplace(member.key, Build(member.value));
      }
      return object;
    }
    case dom::element_type::ARRAY: {
      Json array = Json::array();
      for (const dom::element member : dom::array(element)) {
        array.push_back(Build(member));
      }
      return array;
    }
    case dom::element_type::STRING:
      return std::string_view(element);
    case dom::element_type::INT64:
      return int64_t(element);
    case dom::element_type::UINT64:
      return uint64_t(element);
    case dom::element_type::DOUBLE:
      return double(element);
    case dom::element_type::BOOL:
      return bool(element);
    case dom::element_type::NULL_VALUE:
      break;
  }
  return nullptr;
}

}  // namespace

struct JsonDocument::Impl {
  dom::parser parser;
  size_t capacity = 0;
};

JsonDocument::JsonDocument() : impl_(std::make_unique<Impl>()) {}
JsonDocument::~JsonDocument() = default;

StatusOr<JsonView> JsonDocument::Parse(std::string_view text) {
  const simdjson::padded_string padded(text);
  return ParsePadded({padded.data(), padded.size()});
}

StatusOr<JsonView> JsonDocument::ParsePadded(std::string_view text) {
  const bool shrinks = impl_->capacity > kKeptCapacity && text.size() < impl_->capacity / 4;
  if (text.size() > impl_->capacity || shrinks) {
    // Replace the parser and its document, because the document's memory only grows.
    impl_->parser = dom::parser();
    impl_->capacity = 0;
    const size_t wanted = std::max(text.size(), kSmallestCapacity);
    if (impl_->parser.allocate(wanted, kMaxJsonDepth) != simdjson::SUCCESS) return NoMemory(text);
    impl_->capacity = wanted;
  }
  dom::element root;
  const auto error = impl_->parser.parse(text.data(), text.size(), false).get(root);
  if (error == simdjson::MEMALLOC || error == simdjson::CAPACITY) return NoMemory(text);
  if (error != simdjson::SUCCESS) {
    return InvalidArgument("not valid JSON: ", simdjson::error_message(error));
  }
  JsonView view;
  view.present_ = !root.is_null();
  std::memcpy(view.element_, &root, sizeof(root));
  return view;
}

bool JsonView::IsObject() const {
  return present_ && ElementOf(element_).is_object();
}

bool JsonView::IsArray() const {
  return present_ && ElementOf(element_).is_array();
}

bool JsonView::IsString() const {
  return present_ && ElementOf(element_).is_string();
}

JsonView JsonView::operator[](std::string_view key) const {
  JsonView view;
  dom::object object;
  dom::element member;
  if (!present_ || ElementOf(element_).get(object) != simdjson::SUCCESS ||
      object.at_key(key).get(member) != simdjson::SUCCESS || member.is_null()) {
    return view;
  }
  view.present_ = true;
  std::memcpy(view.element_, &member, sizeof(member));
  return view;
}

std::string_view JsonView::Text() const {
  std::string_view text;
  if (!present_ || ElementOf(element_).get(text) != simdjson::SUCCESS) return {};
  return text;
}

StatusOr<std::string> JsonView::String() const {
  std::string_view text;
  if (!present_ || ElementOf(element_).get(text) != simdjson::SUCCESS) return Mismatch("a string");
  return std::string(text);
}

std::optional<int64_t> JsonView::IfInt() const {
  return ValueOf<int64_t>(present_, element_);
}

std::optional<double> JsonView::IfDouble() const {
  return ValueOf<double>(present_, element_);
}

std::optional<bool> JsonView::IfBool() const {
  return ValueOf<bool>(present_, element_);
}

StatusOr<int64_t> JsonView::Int() const {
  if (const std::optional<int64_t> value = IfInt()) return *value;
  return Mismatch("an integer of 64 bits");
}

StatusOr<int32_t> JsonView::Int32() const {
  ASSIGN_OR_RETURN(const int64_t wide, Int());
  if (wide < std::numeric_limits<int32_t>::min() || wide > std::numeric_limits<int32_t>::max()) {
    return Mismatch("an integer of 32 bits");
  }
  return static_cast<int32_t>(wide);
}

StatusOr<double> JsonView::Double() const {
  if (const std::optional<double> value = IfDouble()) return *value;
  return Mismatch("a number");
}

StatusOr<bool> JsonView::Bool() const {
  if (const std::optional<bool> value = IfBool()) return *value;
  return Mismatch("true or false");
}

StatusOr<std::vector<std::pair<std::string_view, JsonView>>> JsonView::Members() const {
  std::vector<std::pair<std::string_view, JsonView>> members;
  if (!present_) return members;
  dom::object object;
  if (ElementOf(element_).get(object) != simdjson::SUCCESS) return Mismatch("an object");
  for (const dom::key_value_pair member : object) {
    JsonView view;
    view.present_ = !member.value.is_null();
    std::memcpy(view.element_, &member.value, sizeof(member.value));
    members.emplace_back(member.key, view);
  }
  return members;
}

StatusOr<std::vector<JsonView>> JsonView::Elements() const {
  std::vector<JsonView> elements;
  if (!present_) return elements;
  dom::array array;
  if (ElementOf(element_).get(array) != simdjson::SUCCESS) return Mismatch("a list");
  elements.reserve(array.size());
  for (const dom::element member : array) {
    JsonView& view = elements.emplace_back();
    view.present_ = !member.is_null();
    std::memcpy(view.element_, &member, sizeof(member));
  }
  return elements;
}

Status JsonView::ForEachMember(absl::FunctionRef<Status(std::string_view, JsonView)> visit) const {
  dom::object object;
  if (!present_ || ElementOf(element_).get(object) != simdjson::SUCCESS)
    return Mismatch("an object");
  for (const dom::key_value_pair member : object) {
    JsonView view;
    view.present_ = !member.value.is_null();
    std::memcpy(view.element_, &member.value, sizeof(member.value));
    RETURN_IF_ERROR(visit(member.key, view));
  }
  return OkStatus();
}

Status JsonView::ForEachElement(absl::FunctionRef<Status(JsonView)> visit) const {
  dom::array array;
  if (!present_ || ElementOf(element_).get(array) != simdjson::SUCCESS) return Mismatch("a list");
  for (const dom::element member : array) {
    JsonView view;
    view.present_ = !member.is_null();
    std::memcpy(view.element_, &member, sizeof(member));
    RETURN_IF_ERROR(visit(view));
  }
  return OkStatus();
}

std::string_view JsonView::TypeName() const {
  if (!present_) return "null";
  switch (ElementOf(element_).type()) {
    case dom::element_type::OBJECT:
      return "an object";
    case dom::element_type::ARRAY:
      return "a list";
    case dom::element_type::STRING:
      return "a string";
    case dom::element_type::INT64:
    case dom::element_type::UINT64:
    case dom::element_type::DOUBLE:
      return "a number";
    case dom::element_type::BOOL:
      return "a boolean";
    case dom::element_type::NULL_VALUE:
      break;
  }
  return "null";
}

Status JsonView::Mismatch(std::string_view expected) const {
  return InvalidArgument("expected ", expected);
}

Json ToJson(const JsonView& view) {
  if (!view.present()) return nullptr;
  return Build(ElementOf(view.element_));
}

}  // namespace tfjob
