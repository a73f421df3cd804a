#include "runtime/base/yaml.h"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

namespace tfjob {
namespace {

// Limits how far a document may expand. Aliases can make a small document expand to a huge value
// ("billion laughs"). So can anchors, because each anchor keeps a copy of its value, and nested
// anchors keep a copy at every level. The number of values plus the bytes of text in a document,
// including these copies, must not exceed this number plus four times the size of the whole input.
// Input without anchors never reaches this limit.
constexpr size_t kFreeExpansion = 100'000;

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
  // The most negative number has no positive counterpart, so its magnitude is INT64_MAX + 1. The
  // negation is modulo 2^64.
  if (magnitude > static_cast<unsigned long long>(INT64_MAX) + 1) return false;
  value = static_cast<int64_t>(-magnitude);
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

// Converts a scalar to a JSON value. The tag "!" marks a quoted scalar, and "?" marks a plain
// scalar.
Json Scalar(const std::string& tag, const std::string& text) {
  if (tag == "!" || tag == "tag:yaml.org,2002:str") return text;
  if (IsOneOf(text, {"", "~", "null", "Null", "NULL"})) return nullptr;
  if (IsOneOf(text, {"true", "True", "TRUE", "yes", "Yes", "YES", "on", "On", "ON", "y", "Y"}))
    return true;
  if (IsOneOf(text, {"false", "False", "FALSE", "no", "No", "NO", "off", "Off", "OFF", "n", "N"}))
    return false;
  Json value;
  if (ParseInteger(text, value) || ParseFloat(text, value)) return value;
  return text;
}

// Merges the value of "<<", a mapping or a list of mappings, into `merged`. If several mappings
// contain a key, the first one wins. Returns false if the value is of any other type.
bool Merge(const Json& value, Json& merged) {
  const Json sources = value.is_array() ? value : Json::array({value});
  for (const Json& source : sources) {
    if (!source.is_object()) return false;
    for (const auto& [key, member] : source.items()) {
      if (!merged.contains(key)) merged[key] = member;
    }
  }
  return true;
}

// Builds the value of one document from parse events, without yaml-cpp's node graph. Cycles are
// therefore impossible, and the cost of an alias is known before its value is copied. Ignores all
// events after the first error.
class YamlBuilder : public YAML::EventHandler {
 public:
  // `budget` limits the number of values plus the bytes of text. Both are counted with the
  // document's aliases expanded, and include the copies kept for anchors.
  explicit YamlBuilder(size_t budget) : budget_(budget) {}

  const Status& status() const { return status_; }
  const YAML::Mark& start() const { return start_; }
  Json Take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark& mark) override { start_ = mark; }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    if (ExpectsKey()) return Fail(mark, "a key must be a string");
    Place(mark, {nullptr, 1}, anchor);
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) return Fail(mark, "an alias is inside the value it refers to");
    const Sized& value = found->second;
    if (!ExpectsKey()) return Place(mark, value, YAML::NullAnchor);
    if (!value.json.is_string()) return Fail(mark, "a key must be a string");
    PlaceKey(mark, value.json.get_ref<const std::string&>(), false);
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& text) override {
    if (!ExpectsKey()) return Place(mark, {Scalar(tag, text), 1 + text.size()}, anchor);
    if (anchor != YAML::NullAnchor) Keep(anchor, {text, 1 + text.size()});
    PlaceKey(mark, text, text == "<<" && tag != "!");
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    Open(mark, Json::array(), anchor);
  }
  void OnSequenceEnd() override { Close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string&, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    Open(mark, Json::object(), anchor);
  }
  void OnMapEnd() override { Close(); }

 private:
  struct Sized {
    Json json;
    size_t cost = 0;  // number of values and bytes of text
  };
  struct Container {
    Sized value;
    YAML::Mark mark;
    YAML::anchor_t anchor = YAML::NullAnchor;
    std::optional<std::string> key;  // set between the key and its value
    bool is_merge = false;           // the key is "<<"
    Json merged = Json::object();
  };

  void Fail(const YAML::Mark& mark, std::string_view text) {
    if (status_.ok()) status_ = At(mark, text);
  }

  bool ExpectsKey() const {
    return status_.ok() && !open_.empty() && open_.back().value.json.is_object() &&
           !open_.back().key;
  }

  void PlaceKey(const YAML::Mark& mark, const std::string& key, bool is_merge) {
    if (!status_.ok()) return;
    Container& map = open_.back();
    if (!is_merge && map.value.json.contains(key)) {
      return Fail(mark, StrCat("duplicate key \"", key, "\""));
    }
    map.value.cost += 1 + key.size();
    map.key = key;
    map.is_merge = is_merge;
  }

  void Place(const YAML::Mark& mark, Sized value, YAML::anchor_t anchor) {
    if (!status_.ok()) return;
    const size_t copies = anchor == YAML::NullAnchor ? 1 : 2;
    if (kept_cost_ + OpenCost() + copies * value.cost > budget_) {
      return Fail(mark,
                  StrCat("anchors and aliases expand to more than ", budget_, " values and bytes"));
    }
    if (anchor != YAML::NullAnchor) Keep(anchor, value);
    if (open_.empty()) {
      root_ = std::move(value.json);
      return;
    }
    Container& parent = open_.back();
    parent.value.cost += value.cost;
    if (parent.value.json.is_array()) {
      parent.value.json.push_back(std::move(value.json));
    } else if (!parent.is_merge) {
      parent.value.json[*parent.key] = std::move(value.json);
    } else if (!Merge(value.json, parent.merged)) {
      return Fail(mark, "a merge key (<<) takes mappings");
    }
    parent.key.reset();
  }

  // Keeps a copy of an anchor's value for the aliases that refer to it.
  void Keep(YAML::anchor_t anchor, Sized value) {
    kept_cost_ += value.cost;
    anchors_[anchor] = std::move(value);
  }

  // Returns the total cost so far of the containers that are still open.
  size_t OpenCost() const {
    size_t cost = 0;
    for (const Container& container : open_) cost += container.value.cost;
    return cost;
  }

  void Open(const YAML::Mark& mark, Json empty, YAML::anchor_t anchor) {
    if (ExpectsKey()) return Fail(mark, "a key must be a string");
    if (open_.size() >= kMaxJsonDepth) {
      return Fail(mark, StrCat("nested deeper than ", kMaxJsonDepth, " levels"));
    }
    if (!status_.ok()) return;
    Container container;
    container.value = {std::move(empty), 1};
    container.mark = mark;
    container.anchor = anchor;
    open_.push_back(std::move(container));
  }

  void Close() {
    if (!status_.ok()) return;
    Container closed = std::move(open_.back());
    open_.pop_back();
    for (auto& [key, member] : closed.merged.items()) {
      if (!closed.value.json.contains(key)) closed.value.json[key] = std::move(member);
    }
    Place(closed.mark, std::move(closed.value), closed.anchor);
  }

  const size_t budget_;
  Status status_;
  YAML::Mark start_;
  Json root_;
  std::vector<Container> open_;
  std::map<YAML::anchor_t, Sized> anchors_;
  size_t kept_cost_ = 0;  // total cost of the values in anchors_
};

void Emit(const Json& value, YAML::Emitter& out);

void EmitString(const std::string& text, YAML::Emitter& out) {
  // Quote the text if a reader could mistake the plain form for a value of another type.
  const Json reread = Scalar("?", text);
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

// Checks for invalid UTF-8 and for NUL bytes. yaml-cpp does not check the encoding, and a NUL byte
// would end a number early.
Status CheckText(std::string_view text, std::string_view what) {
  if (const size_t nul = text.find('\0'); nul != std::string_view::npos) {
    const auto line = std::ranges::count(text.substr(0, nul), '\n') + 1;
    return InvalidArgument(what, ": line ", line, ": a NUL byte; write \"\\0\" in double quotes");
  }
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
  RETURN_IF_ERROR(CheckText(text, what));
  std::vector<Json> documents;
  std::istringstream stream{std::string(text)};
  try {
    YAML::Parser parser(stream);
    int last_start = -1;
    while (true) {
      YamlBuilder builder(kFreeExpansion + 4 * text.size());
      if (!parser.HandleNextDocument(builder)) break;
      if (!builder.status().ok()) return Annotate(builder.status(), what);
      // If the parser has not advanced, it is at a stray "," or "]", where it would report empty
      // documents forever.
      if (builder.start().pos == last_start) {
        return Annotate(At(builder.start(), "no document can begin here"), what);
      }
      last_start = builder.start().pos;
      Json document = builder.Take();
      if (!document.is_null()) documents.push_back(std::move(document));
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
