#include "runtime/graph/device.h"

#include <charconv>
#include <vector>

namespace tfjob::graph {
namespace {

std::string Upper(std::string_view text) {
  std::string upper(text);
  for (char& c : upper) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return upper;
}

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

Status Bad(std::string_view text, std::string_view part) {
  return InvalidArgument("device \"", text, "\": expected parts /job:NAME, /replica:N, /task:N, ",
                         "/device:TYPE:N, got \"/", part, "\"");
}

// Parses a non-negative number into `number`. Also accepts "*", and then leaves `number` unchanged.
bool ParseNumber(std::string_view text, std::optional<int>* number) {
  if (text == "*") return true;
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return false;
  *number = value;
  return true;
}

bool ParseTypeAndIndex(std::string_view type, std::string_view index, DeviceSpec* spec) {
  if (type.empty()) return false;
  if (type != "*") spec->type = Upper(type);
  return ParseNumber(index, &spec->index);
}

bool ParsePart(const std::vector<std::string_view>& words, DeviceSpec* spec) {
  const std::string_view key = words[0];
  if (words.size() == 3 && key == "device") return ParseTypeAndIndex(words[1], words[2], spec);
  if (words.size() != 2 || words[1].empty()) return false;
  if (key == "device") return ParseTypeAndIndex(words[1], "*", spec);
  if (key == "replica") return ParseNumber(words[1], &spec->replica);
  if (key == "task") return ParseNumber(words[1], &spec->task);
  if (key == "job") {
    if (words[1] != "*") spec->job = std::string(words[1]);
    return true;
  }
  const std::string type = Upper(key);
  return (type == "CPU" || type == "GPU") && ParseTypeAndIndex(type, words[1], spec);
}

}  // namespace

StatusOr<DeviceSpec> DeviceSpec::Parse(std::string_view text) {
  DeviceSpec spec;
  if (text.empty()) return spec;
  if (text[0] != '/') return Bad(text, text);
  for (std::string_view part : Split(text.substr(1), '/')) {
    if (!ParsePart(Split(part, ':'), &spec)) return Bad(text, part);
  }
  return spec;
}

std::string DeviceSpec::ToString() const {
  std::string text;
  if (job) text += "/job:" + *job;
  if (replica) text += StrCat("/replica:", *replica);
  if (task) text += StrCat("/task:", *task);
  if (type || index) {
    text += "/device:" + type.value_or("*") + ":" + (index ? StrCat(*index) : std::string("*"));
  }
  return text;
}

DeviceSpec DeviceSpec::MergedWith(const DeviceSpec& inner) const {
  DeviceSpec merged = inner;
  if (!merged.job) merged.job = job;
  if (!merged.replica) merged.replica = replica;
  if (!merged.task) merged.task = task;
  if (!merged.type) merged.type = type;
  if (!merged.index) merged.index = index;
  return merged;
}

}  // namespace tfjob::graph
