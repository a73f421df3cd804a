// Collects all errors and warnings while an object is decoded, instead of stopping at the first.
#pragma once

#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "operator/api/validate.h"
#include "operator/objects/fields.h"
#include "runtime/base/json.h"

namespace tfjob::manifest {

using Words = std::span<const std::string>;

class Reader {
 public:
  // `message` starts with the path.
  void Error(std::string message) { errors_.insert(std::move(message)); }
  void Warn(std::string path, std::string message);

  // Returns false if the field is absent, or is not an object, which is also recorded as an error.
  bool IsObject(const JsonField& field);
  // Leaves `value` unchanged if the field is absent or null.
  template <typename T>
  void Read(const JsonField& field, T& value) {
    Note(objects::Read(field, value));
  }
  void Note(const Status& status) {
    if (!status.ok()) Error(std::string(Message(status)));
  }
  // Reads a string that `parse` accepts; errors list `words`. An empty string yields `empty`.
  template <typename Enum>
  void ReadWord(const JsonField& field, std::optional<Enum> (*parse)(std::string_view), Words words,
                std::optional<Enum> empty, std::optional<Enum>& value) {
    std::string text;
    Read(field, text);
    if (!field.present() || !field.String().ok()) return;
    value = text.empty() ? empty : parse(text);
    if (!text.empty() && !value) Error(UnknownWord(field, text, words));
  }
  // Adds a warning for every member that is not in `known`.
  void WarnOfUnknown(const JsonField& object, Words known);

  // Returns OK, or InvalidArgument with one sorted line per error.
  Status ToStatus() const;
  // Sorted by path.
  std::vector<api::FieldIssue> warnings() const;

 private:
  static std::string UnknownWord(const JsonField& field, const std::string& text, Words words);

  std::set<std::string> errors_;
  std::set<api::FieldIssue> warnings_;
};

}  // namespace tfjob::manifest
