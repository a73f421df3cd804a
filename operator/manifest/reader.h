// Collects the errors and warnings that are found while an object is being decoded, so decoding
// need not stop at the first error.
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

  // Returns whether the field is an object. Records an error if it is present but not an object.
  bool IsObject(const JsonField& field);
  // Reads the field into `value`, which stays unchanged if the field is absent or null.
  template <typename T>
  void Read(const JsonField& field, T& value) {
    Note(objects::Read(field, value));
  }
  void Note(const Status& status) {
    if (!status.ok()) Error(std::string(Message(status)));
  }
  // Reads a string and converts it with `parse`. An empty string sets `value` to `empty`. If
  // `parse` rejects the string, adds an error that lists `words`.
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

  // Returns OK, or InvalidArgument with one line per error, sorted.
  Status ToStatus() const;
  // Returns the warnings, sorted by path.
  std::vector<api::FieldIssue> warnings() const;

 private:
  static std::string UnknownWord(const JsonField& field, const std::string& text, Words words);

  std::set<std::string> errors_;
  std::set<api::FieldIssue> warnings_;
};

}  // namespace tfjob::manifest
