#include "runtime/base/json.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <set>

namespace tfjob {
namespace {

// Builds a DOM from parse events. Rejects deep nesting and duplicate keys, which nlohmann/json's
// own parser accepts.
class JsonBuilder : public nlohmann::json_sax<Json> {
 public:
  explicit JsonBuilder(Json& root) : root_(root) {}

  const std::string& error() const { return error_; }

  bool null() override { return Place(nullptr); }
  bool boolean(bool value) override { return Place(value); }
  bool number_integer(int64_t value) override { return Place(value); }
  bool number_unsigned(uint64_t value) override { return Place(value); }
  bool number_float(double value, const std::string&) override { return Place(value); }
  bool string(std::string& value) override { return Place(std::move(value)); }
  bool binary(Json::binary_t&) override { return Fail("binary values are not JSON"); }
  bool start_object(size_t) override { return Open(Json::object()); }
  bool start_array(size_t) override { return Open(Json::array()); }
  bool end_object() override { return Close(); }
  bool end_array() override { return Close(); }
  bool key(std::string& key) override {
    if (stack_.back()->contains(key)) return Fail(StrCat("duplicate key \"", key, "\""));
    key_ = key;
    return true;
  }
  bool parse_error(size_t, const std::string&,
                   const nlohmann::detail::exception& exception) override {
    std::string text = exception.what();
    const size_t cut = text.find("] ");
    return Fail(cut == std::string::npos ? text : text.substr(cut + 2));
  }

 private:
  bool Fail(std::string error) {
    error_ = std::move(error);
    return false;
  }
  Json* Insert(Json value) {
    if (stack_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Json& parent = *stack_.back();
    if (parent.is_array()) {
      parent.push_back(std::move(value));
      return &parent.back();
    }
    return &(parent[key_] = std::move(value));
  }
  bool Place(Json value) {
    Insert(std::move(value));
    return true;
  }
  bool Open(Json container) {
    if (stack_.size() >= kMaxJsonDepth)
      return Fail(StrCat("nested deeper than ", kMaxJsonDepth, " levels"));
    stack_.push_back(Insert(std::move(container)));
    return true;
  }
  bool Close() {
    stack_.pop_back();
    return true;
  }

  Json& root_;
  std::vector<Json*> stack_;
  std::string key_;
  std::string error_;
};

}  // namespace

StatusOr<Json> ParseJson(std::string_view text, std::string_view what) {
  // Reject NULs, because the parser would mistake a NUL for the end of the text.
  if (const size_t nul = text.find('\0'); nul != std::string_view::npos) {
    return InvalidArgument(what, " is not valid JSON: a NUL byte at offset ", nul);
  }
  Json document;
  JsonBuilder builder(document);
  if (!Json::sax_parse(text, &builder))
    return InvalidArgument(what, " is not valid JSON: ", builder.error());
  return document;
}

bool IsUtf8(std::string_view text) {
  for (size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i++]);
    if (lead < 0x80) continue;
    if (lead < 0xC2 || lead > 0xF4) return false;
    const int continuations = lead < 0xE0 ? 1 : lead < 0xF0 ? 2 : 3;
    // The limits of the first continuation byte exclude overlong forms, surrogates and code points
    // beyond U+10FFFF.
    unsigned char low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
    unsigned char high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
    for (int k = 0; k < continuations; ++k, low = 0x80, high = 0xBF) {
      if (i == text.size()) return false;
      const auto byte = static_cast<unsigned char>(text[i++]);
      if (byte < low || byte > high) return false;
    }
  }
  return true;
}

std::string PrintJson(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string PrintJsonIndented(const Json& value) {
  return value.dump(2, ' ', false, Json::error_handler_t::replace);
}

std::string DescribeJson(const Json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "a list";
  std::string text = PrintJson(value);
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  return text;
}

JsonField::JsonField(const Json& document, std::string path)
    : value_(document.is_null() ? nullptr : &document), path_(std::move(path)) {}

JsonField JsonField::operator[](std::string_view key) const {
  std::string path = path_.empty() ? std::string(key) : StrCat(path_, ".", key);
  if (value_ == nullptr || !value_->is_object()) return {nullptr, std::move(path)};
  auto found = value_->find(std::string(key));
  if (found == value_->end() || found->is_null()) return {nullptr, std::move(path)};
  return {&*found, std::move(path)};
}

JsonField JsonField::operator[](size_t index) const {
  std::string path = StrCat(path_, "[", index, "]");
  if (value_ == nullptr || !value_->is_array() || index >= value_->size())
    return {nullptr, std::move(path)};
  const Json& element = (*value_)[index];
  return {element.is_null() ? nullptr : &element, std::move(path)};
}

Status JsonField::Mismatch(std::string_view expected) const {
  const std::string_view where = path_.empty() ? "the document" : std::string_view(path_);
  if (!present()) return InvalidArgument(where, ": expected ", expected, ", but it is missing");
  return InvalidArgument(where, ": expected ", expected, ", got ", DescribeJson(*value_));
}

bool JsonField::IsObject() const {
  return present() && value_->is_object();
}

StatusOr<std::string> JsonField::String() const {
  if (!present() || !value_->is_string()) return Mismatch("a string");
  const auto& text = value_->get_ref<const std::string&>();
  if (!IsUtf8(text)) return Mismatch("text in UTF-8");
  return text;
}

StatusOr<int64_t> JsonField::Int() const {
  if (!present() || !value_->is_number_integer()) return Mismatch("an integer");
  if (value_->is_number_unsigned() &&
      value_->get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
    return Mismatch("an integer of 64 bits");
  }
  return value_->get<int64_t>();
}

StatusOr<int32_t> JsonField::Int32() const {
  ASSIGN_OR_RETURN(int64_t wide, Int());
  if (wide < std::numeric_limits<int32_t>::min() || wide > std::numeric_limits<int32_t>::max()) {
    return Mismatch("an integer of 32 bits");
  }
  return static_cast<int32_t>(wide);
}

StatusOr<double> JsonField::Double() const {
  if (!present() || !value_->is_number()) return Mismatch("a number");
  return value_->get<double>();
}

StatusOr<bool> JsonField::Bool() const {
  if (!present() || !value_->is_boolean()) return Mismatch("true or false");
  return value_->get<bool>();
}

StatusOr<std::string> JsonField::StringOr(std::string_view otherwise) const {
  if (!present()) return std::string(otherwise);
  return String();
}

StatusOr<int64_t> JsonField::IntOr(int64_t otherwise) const {
  if (!present()) return otherwise;
  return Int();
}

StatusOr<double> JsonField::DoubleOr(double otherwise) const {
  if (!present()) return otherwise;
  return Double();
}

StatusOr<bool> JsonField::BoolOr(bool otherwise) const {
  if (!present()) return otherwise;
  return Bool();
}

StatusOr<std::vector<std::pair<std::string, JsonField>>> JsonField::Members() const {
  std::vector<std::pair<std::string, JsonField>> members;
  if (!present()) return members;
  if (!value_->is_object()) return Mismatch("an object");
  for (const auto& [key, value] : value_->items()) members.emplace_back(key, (*this)[key]);
  return members;
}

StatusOr<std::vector<JsonField>> JsonField::Elements() const {
  std::vector<JsonField> elements;
  if (!present()) return elements;
  if (!value_->is_array()) return Mismatch("a list");
  for (size_t i = 0; i < value_->size(); ++i) elements.push_back((*this)[i]);
  return elements;
}

}  // namespace tfjob
