#include "runtime/base/yaml.h"

#include <yaml-cpp/yaml.h>

#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

namespace tfjob {
namespace {

constexpr int kMaxDepth = 200;
constexpr size_t kMaxNodes = 500'000;  // aliases may multiply a small text ("billion laughs")

Status At(const YAML::Mark& mark, std::string_view text) {
  return InvalidArgument("line ", mark.line + 1, ", column ", mark.column + 1, ": ", text);
}

bool IsOneOf(std::string_view text, std::initializer_list<std::string_view> words) {
  for (std::string_view word : words) {
    if (text == word) return true;
  }
  return false;
}

bool ParseInteger(const std::string& text, Json& value) {
  size_t start = text[0] == '-' || text[0] == '+' ? 1 : 0;
  if (start == text.size() || !isdigit(static_cast<unsigned char>(text[start]))) return false;
  int base = 10;
  std::string digits = text.substr(start);
  if (digits.size() > 1 && digits[0] == '0') {
    base = digits[1] == 'x' ? 16 : 8;
    digits = digits.substr(digits[1] == 'x' || digits[1] == 'o' ? 2 : 1);
  }
  if (digits.empty() || !isxdigit(static_cast<unsigned char>(digits[0]))) return false;
  char* end = nullptr;
  errno = 0;
  const unsigned long long magnitude = std::strtoull(digits.c_str(), &end, base);
  if (*end != '\0' || errno != 0) return false;
  if (text[0] != '-') {
    if (magnitude <= INT64_MAX) {
      value = static_cast<int64_t>(magnitude);
    } else {
      value = static_cast<uint64_t>(magnitude);
    }
    return true;
  }
  if (magnitude > static_cast<unsigned long long>(INT64_MAX)) return false;
  value = -static_cast<int64_t>(magnitude);
  return true;
}

bool ParseFloat(const std::string& text, Json& value) {
  if (text.find_first_not_of("0123456789.eE+-") != std::string::npos) return false;
  if (text.find_first_of("0123456789") == std::string::npos) return false;
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  if (*end != '\0' || !std::isfinite(number)) return false;
  value = number;
  return true;
}

Json Scalar(const YAML::Node& node) {
  const std::string& text = node.Scalar();
  if (node.Tag() == "!" || node.Tag() == "tag:yaml.org,2002:str")
    return text;  // "!" marks a quoted scalar
  if (IsOneOf(text, {"", "~", "null", "Null", "NULL"})) return nullptr;
  if (IsOneOf(text, {"true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON", "y", "Y"}))
    return true;
  if (IsOneOf(text, {"false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF", "n", "N"}))
    return false;
  Json value;
  if (ParseInteger(text, value) || ParseFloat(text, value)) return value;
  return text;
}

class Converter {
 public:
  StatusOr<Json> Convert(const YAML::Node& node, int depth) {
    if (depth > kMaxDepth)
      return At(node.Mark(), StrCat("nested deeper than ", kMaxDepth, " levels"));
    if (++nodes_ > kMaxNodes) return At(node.Mark(), "aliases expand to more than 500,000 values");
    switch (node.Type()) {
      case YAML::NodeType::Undefined:
      case YAML::NodeType::Null:
        return Json(nullptr);
      case YAML::NodeType::Scalar:
        return Scalar(node);
      case YAML::NodeType::Sequence:
        return Sequence(node, depth);
      case YAML::NodeType::Map:
        return Map(node, depth);
    }
    return Json(nullptr);
  }

 private:
  StatusOr<Json> Sequence(const YAML::Node& node, int depth) {
    Json list = Json::array();
    for (const auto& element : node) {
      ASSIGN_OR_RETURN(Json value, Convert(element, depth + 1));
      list.push_back(std::move(value));
    }
    return list;
  }

  StatusOr<Json> Map(const YAML::Node& node, int depth) {
    Json object = Json::object();
    Json merged = Json::object();
    for (const auto& member : node) {
      if (!member.first.IsScalar()) return At(member.first.Mark(), "a key must be a string");
      const std::string& key = member.first.Scalar();
      ASSIGN_OR_RETURN(Json value, Convert(member.second, depth + 1));
      if (key == "<<" && member.first.Tag() != "!") {
        RETURN_IF_ERROR(Merge(member.second, value, merged));
        continue;
      }
      if (object.contains(key))
        return At(member.first.Mark(), StrCat("duplicate key \"", key, "\""));
      object[key] = std::move(value);
    }
    for (auto& [key, value] : merged.items()) {
      if (!object.contains(key)) object[key] = value;
    }
    return object;
  }

  // "<<: *anchor" or a list of them; the first mapping that has a key wins.
  static Status Merge(const YAML::Node& node, const Json& value, Json& merged) {
    const Json sources = value.is_array() ? value : Json::array({value});
    for (const Json& source : sources) {
      if (!source.is_object()) return At(node.Mark(), "a merge key (<<) takes mappings");
      for (const auto& [key, member] : source.items()) {
        if (!merged.contains(key)) merged[key] = member;
      }
    }
    return OkStatus();
  }

  size_t nodes_ = 0;
};

void Emit(const Json& value, YAML::Emitter& out);

void EmitString(const std::string& text, YAML::Emitter& out) {
  // Quoted whenever a reader could take the plain form for something else.
  YAML::Node plain(text);
  const Json reread = Scalar(plain);
  if (!reread.is_string()) out << YAML::DoubleQuoted;
  out << text;
}

void Emit(const Json& value, YAML::Emitter& out) {
  switch (value.type()) {
    case Json::value_t::object:
      if (value.empty()) out << YAML::Flow;
      out << YAML::BeginMap;
      for (const auto& [key, member] : value.items()) {
        out << YAML::Key;
        EmitString(key, out);
        out << YAML::Value;
        Emit(member, out);
      }
      out << YAML::EndMap;
      return;
    case Json::value_t::array:
      if (value.empty()) out << YAML::Flow;
      out << YAML::BeginSeq;
      for (const Json& element : value) Emit(element, out);
      out << YAML::EndSeq;
      return;
    case Json::value_t::string:
      EmitString(value.get_ref<const std::string&>(), out);
      return;
    case Json::value_t::null:
      out << YAML::Null;
      return;
    default:
      out << value.dump();
      return;
  }
}

// yaml-cpp passes any bytes on.
Status CheckUtf8(std::string_view text, std::string_view what) {
  if (IsUtf8(text)) return OkStatus();
  int line = 1;
  size_t start = 0;
  for (size_t end; (end = text.find('\n', start)) != std::string_view::npos; start = end + 1) {
    if (!IsUtf8(text.substr(start, end - start))) break;
    ++line;
  }
  return InvalidArgument(what, ": line ", line, ": the text is not UTF-8");
}

}  // namespace

StatusOr<std::vector<Json>> ParseYaml(std::string_view text, std::string_view what) {
  RETURN_IF_ERROR(CheckUtf8(text, what));
  std::vector<Json> documents;
  try {
    for (const YAML::Node& node : YAML::LoadAll(std::string(text))) {
      StatusOr<Json> document = Converter().Convert(node, 0);
      if (!document.ok()) return Annotate(document.status(), what);
      if (!document->is_null()) documents.push_back(*std::move(document));
    }
  } catch (const YAML::ParserException& error) {
    return Annotate(At(error.mark, error.msg), what);
  } catch (const YAML::Exception& error) {
    return InvalidArgument(what, ": ", error.what());
  }
  return documents;
}

std::string PrintYaml(const Json& value) {
  YAML::Emitter out;
  Emit(value, out);
  return std::string(out.c_str()) + "\n";
}

}  // namespace tfjob
