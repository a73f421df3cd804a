#include "operator/manifest/reader.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "runtime/base/did_you_mean.h"

namespace tfjob::manifest {

void Reader::Warn(std::string path, std::string message) {
  warnings_.insert({std::move(path), std::move(message)});
}

bool Reader::IsObject(const JsonField& field) {
  if (!field.present()) return false;
  if (field.value()->is_object()) return true;
  Note(field.Mismatch("an object"));
  return false;
}

std::string Reader::UnknownWord(const JsonField& field, const std::string& text, Words words) {
  std::string known;
  for (const std::string& word : words)
    known += StrCat(known.empty() ? "" : ", ", "\"", word, "\"");
  const std::string nearest = NearestName(text, words);
  return StrCat(Message(field.Mismatch("one of " + known)),
                nearest.empty() ? "" : StrCat("; did you mean \"", nearest, "\"?"));
}

void Reader::WarnOfUnknown(const JsonField& object, Words known) {
  const auto members = object.Members();
  if (!members.ok()) return;
  for (const auto& [key, field] : *members) {
    if (std::find(known.begin(), known.end(), key) != known.end()) continue;
    const std::string nearest = NearestName(key, known);
    Warn(field.path(), nearest.empty() ? "this field is unknown and has no effect"
                                       : StrCat("this field is unknown and has no effect; did you "
                                                "mean \"",
                                                nearest, "\"?"));
  }
}

Status Reader::ToStatus() const {
  if (errors_.empty()) return OkStatus();
  std::string lines;
  for (const std::string& error : errors_) lines += (lines.empty() ? "" : "\n") + error;
  return InvalidArgument(lines);
}

std::vector<api::FieldIssue> Reader::warnings() const {
  return {warnings_.begin(), warnings_.end()};
}

}  // namespace tfjob::manifest
