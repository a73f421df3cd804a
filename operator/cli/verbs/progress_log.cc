#include "operator/cli/verbs/progress_log.h"

#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

namespace tfjob::cli {
namespace {

using Fields = std::map<std::string, std::string, std::less<>>;

// Reads `key=value key="a value"` until the text no longer has this form.
Fields ReadPairs(std::string_view text) {
  Fields fields;
  while (!text.empty()) {
    const size_t equals = text.find('=');
    if (equals == std::string_view::npos) return fields;
    const std::string key(text.substr(0, equals));
    text.remove_prefix(equals + 1);
    size_t end = text.find(' ');
    if (text.starts_with('"')) {
      end = 1;
      while (end < text.size() && text[end] != '"') end += text[end] == '\\' ? 2 : 1;
      end = std::min(end + 1, text.size());
      const auto value = ParseJson(text.substr(0, end), "");
      fields[key] = value.ok() ? JsonField(*value).String().value_or("") : "";
    } else {
      fields[key] = text.substr(0, end);
    }
    text.remove_prefix(
        std::min(text.size(), end == std::string_view::npos ? text.size() : end + 1));
  }
  return fields;
}

Fields ReadJsonLine(std::string_view line) {
  Fields fields;
  const auto json = ParseJson(line, "");
  if (!json.ok()) return fields;
  const auto members = JsonField(*json).Members();
  if (!members.ok()) return fields;
  for (const auto& [key, value] : *members) fields[key] = value.String().value_or("");
  return fields;
}

// Returns the fields of a line whose message is `message`; empty for any other line.
Fields ReadLine(std::string_view line, std::string_view message) {
  if (line.starts_with('{')) {
    Fields fields = ReadJsonLine(line);
    return fields["message"] == message ? fields : Fields();
  }
  const std::string before = " train " + std::string(message) + " ";
  const size_t at = line.find(before + "step=");
  return at == std::string_view::npos ? Fields() : ReadPairs(line.substr(at + before.size()));
}

double Number(const Fields& fields, std::string_view key) {
  const auto found = fields.find(key);
  return found == fields.end() ? 0 : std::strtod(found->second.c_str(), nullptr);
}

progress::Progress ToProgress(const Fields& fields) {
  progress::Progress progress;
  progress.state = progress::State::kTraining;
  progress.step = static_cast<int64_t>(Number(fields, "step"));
  progress.steps_per_s = Number(fields, "steps_per_s");
  const auto result = fields.find("result");
  if (result == fields.end()) return progress;
  const Fields values = ReadPairs(result->second);
  for (const auto& [name, value] : values) {
    if (name == "loss") {
      progress.loss = Number(values, name);
    } else {
      progress.metrics[name] = Number(values, name);
    }
  }
  return progress;
}

}  // namespace

std::optional<progress::Progress> ProgressFromLog(std::string_view log) {
  for (const std::string_view message : {"step", "evaluated"}) {
    std::string_view rest = log;
    while (!rest.empty()) {
      while (rest.ends_with('\n')) rest.remove_suffix(1);
      const size_t begin = rest.rfind('\n') + 1;  // npos + 1 is 0
      const Fields fields = ReadLine(rest.substr(begin), message);
      if (!fields.empty()) return ToProgress(fields);
      rest = rest.substr(0, begin);
    }
  }
  return std::nullopt;
}

}  // namespace tfjob::cli
