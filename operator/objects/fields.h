// Reads an optional member of an object into a variable that already contains the default. If the
// member is absent or null, the variable keeps its value (except a LabelMap, which becomes empty).
// If the member has another type, returns InvalidArgument. A Field is a JsonField, whose errors
// contain the path, or a JsonView (runtime/base/json_view.h), which is faster.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "operator/objects/label_map.h"
#include "runtime/base/clock.h"
#include "runtime/base/json.h"

namespace tfjob::objects {

// Parses an RFC 3339 time and truncates it to whole seconds, as metav1.Time does. A time before
// 1970 is read as unset. Returns false if the text is not an RFC 3339 time.
bool ReadTime(std::string_view text, Time& value);

template <typename Field>
Status Read(const Field& field, std::string& value) {
  if (!field.present()) return OkStatus();
  ASSIGN_OR_RETURN(value, field.String());
  return OkStatus();
}

template <typename Field>
Status Read(const Field& field, bool& value) {
  if (!field.present()) return OkStatus();
  ASSIGN_OR_RETURN(value, field.Bool());
  return OkStatus();
}

template <typename Field>
Status Read(const Field& field, int32_t& value) {
  if (!field.present()) return OkStatus();
  ASSIGN_OR_RETURN(value, field.Int32());
  return OkStatus();
}

template <typename Field>
Status Read(const Field& field, int64_t& value) {
  if (!field.present()) return OkStatus();
  ASSIGN_OR_RETURN(value, field.Int());
  return OkStatus();
}

template <typename Field>
Status Read(const Field& field, Time& value) {
  if (!field.present()) return OkStatus();
  ASSIGN_OR_RETURN(const std::string text, field.String());
  if (ReadTime(text, value)) return OkStatus();
  return field.Mismatch("an RFC 3339 time such as \"2026-11-21T09:30:00Z\"");
}

template <typename Field>
Status Read(const Field& field, std::optional<Time>& value) {
  Time time;
  RETURN_IF_ERROR(Read(field, time));
  if (time != Time()) value = time;
  return OkStatus();
}

template <typename Field>
Status Read(const Field& field, std::vector<std::string>& value) {
  if (!field.present()) return OkStatus();
  ASSIGN_OR_RETURN(const auto elements, field.Elements());
  value.clear();
  for (const Field& element : elements) {
    ASSIGN_OR_RETURN(std::string text, element.String());
    value.push_back(std::move(text));
  }
  return OkStatus();
}

// Reads a map of strings (labels, annotations, selectors). As in Kubernetes, a null value is read
// as "".
template <typename Field>
Status Read(const Field& field, std::map<std::string, std::string>& value) {
  if (!field.present()) return OkStatus();
  ASSIGN_OR_RETURN(const auto members, field.Members());
  value.clear();
  for (const auto& [key, member] : members) {
    if (!IsUtf8(key)) return field.Mismatch("keys in UTF-8");
    RETURN_IF_ERROR(Read(member, value[std::string(key)]));
  }
  return OkStatus();
}

template <typename Field>
Status Read(const Field& field, LabelMap& value) {
  std::map<std::string, std::string> read;
  RETURN_IF_ERROR(Read(field, read));
  value = read;
  return OkStatus();
}

// Reads the field into `value`, which stays unchanged if the field is absent.
template <typename Field, typename T>
Status Read(const Field& field, std::optional<T>& value) {
  if (!field.present()) return OkStatus();
  T read{};
  RETURN_IF_ERROR(Read(field, read));
  value = std::move(read);
  return OkStatus();
}

}  // namespace tfjob::objects
