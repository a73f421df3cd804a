#include "operator/kube/client/decode_odd.h"

#include <algorithm>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/json_split.h"

namespace tfjob::kube {
namespace {

// The maximum depth of the search for the parts that cannot be read. Each level requires another
// pass over the text. The environment of a pod's container is eight levels deep.
constexpr size_t kMaxSearchDepth = 12;
// A JSON object or array that cannot be read completely is omitted if it has more than
// kMaxSearchParts members or elements.
constexpr size_t kMaxSearchParts = 1000;
constexpr size_t kMaxProblems = 5;
constexpr size_t kMaxKeyInPath = 60;

bool IsNotSpec(const JsonMember& member) {
  return member.key != "spec";
}

// Returns at most kMaxKeyInPath bytes of a key, without splitting a UTF-8 character.
std::string BeginningOf(const std::string& key) {
  size_t bytes = std::min(key.size(), kMaxKeyInPath);
  while (bytes < key.size() && (static_cast<uint8_t>(key[bytes]) & 0xc0) == 0x80) --bytes;
  return key.substr(0, bytes);
}

class OddReader {
 public:
  // Reads a value without the parts that cannot be read. Returns null if no part can be read.
  Json Read(std::string_view text, const std::string& path, size_t depth) {
    const JsonSize size = MeasureJson(text);
    if (const Status limits = Check(text, size, depth); !limits.ok()) {
      return ReadParts(text, path, depth, limits);
    }
    StatusOr<Json> json = ParseJson(text, "the value");
    if (!json.ok()) return ReadParts(text, path, depth, json.status());
    values_left_ -= size.values;
    return *std::move(json);
  }

  Status problem() const { return problems_.empty() ? OkStatus() : InvalidArgument(problems_); }

 private:
  Status Check(std::string_view text, const JsonSize& size, size_t depth) const {
    if (depth + size.depth > kMaxJsonDepth) {
      return InvalidArgument("nested deeper than ", kMaxJsonDepth, " levels");
    }
    if (!IsUtf8(text)) return InvalidArgument("not valid UTF-8");
    if (size.values <= values_left_) return OkStatus();
    return InvalidArgument("with it, the object has more than ", kMaxJsonValues, " JSON values");
  }

  // Reads the parts of a JSON object or array that can be read. `why` is the reason why it cannot
  // be read completely.
  Json ReadParts(std::string_view text, const std::string& path, size_t depth, const Status& why) {
    if (depth < kMaxSearchDepth && text.front() == '{') {
      if (auto members = SplitJsonObject(text);
          members.ok() && members->size() <= kMaxSearchParts) {
        // Read the spec last, so that it cannot exhaust kMaxJsonValues before the metadata and the
        // status have been read.
        if (depth == 0) std::stable_partition(members->begin(), members->end(), IsNotSpec);
        return ReadMembers(*members, path, depth);
      }
    } else if (depth < kMaxSearchDepth && text.front() == '[') {
      if (const auto elements = SplitJsonArray(text);
          elements.ok() && elements->size() <= kMaxSearchParts) {
        return ReadElements(*elements, path, depth);
      }
    }
    Note(path, why);
    return Json();
  }

  Json ReadMembers(const std::vector<JsonMember>& members, const std::string& path, size_t depth) {
    Json object = Json::object();
    for (const JsonMember& member : members) {
      const StatusOr<Json> key = ParseJson(StrCat("\"", member.key, "\""), "a key");
      if (!key.ok()) {
        Note(path, InvalidArgument("a key is not valid JSON"));
        continue;
      }
      const auto& name = key->get_ref<const std::string&>();
      const std::string shown = BeginningOf(name);
      const std::string member_path = path.empty() ? shown : StrCat(path, ".", shown);
      if (member_path == "metadata.managedFields") continue;
      Json value = Read(member.value, member_path, depth + 1);
      if (!value.is_null()) object.emplace(name, std::move(value));
    }
    return object;
  }

  // Replaces an element that cannot be read by null, so that the other elements keep their
  // positions.
  Json ReadElements(const std::vector<std::string_view>& elements, const std::string& path,
                    size_t depth) {
    Json array = Json::array();
    for (size_t i = 0; i < elements.size(); ++i) {
      array.push_back(Read(elements[i], StrCat(path, "[", i, "]"), depth + 1));
    }
    return array;
  }

  void Note(const std::string& path, const Status& why) {
    if (++noted_ > kMaxProblems) return;
    if (!problems_.empty()) problems_ += '\n';
    problems_ += StrCat(path.empty() ? "the object" : path, ": ", Message(why));
  }

  size_t values_left_ = kMaxJsonValues;
  std::string problems_;
  size_t noted_ = 0;
};

}  // namespace

bool HasTooManyValues(std::string_view text) {
  // Do not measure a short text: it cannot contain too many values, because each value has at least
  // one byte.
  return text.size() > kMaxJsonValues && MeasureJson(text).values > kMaxJsonValues;
}

StatusOr<OddJson> ReadOddJson(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  if (!text.starts_with('{')) return InvalidArgument("expected an object");
  OddReader reader;
  Json object = reader.Read(text, "", 0);
  if (object.is_null()) return reader.problem();
  return OddJson{std::move(object), reader.problem()};
}

}  // namespace tfjob::kube
