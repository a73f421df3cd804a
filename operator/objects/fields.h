// Reads an optional member of an object into a variable that already holds its default: absent and
// null leave it as it is, a wrong type is InvalidArgument with the path.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/json.h"

namespace tfjob::objects {

Status Read(const JsonField& field, std::string& value);
Status Read(const JsonField& field, bool& value);
Status Read(const JsonField& field, int32_t& value);
Status Read(const JsonField& field, int64_t& value);
// RFC 3339, cut to whole seconds as metav1.Time is; what lies before 1970 reads as unset.
Status Read(const JsonField& field, Time& value);
Status Read(const JsonField& field, std::optional<Time>& value);
Status Read(const JsonField& field, std::vector<std::string>& value);
// A map of strings (labels, annotations, selectors). A null value reads as "", as Kubernetes does.
Status Read(const JsonField& field, std::map<std::string, std::string>& value);

// Present values only; absent leaves nothing.
template <typename T>
Status Read(const JsonField& field, std::optional<T>& value) {
  if (!field.present()) return OkStatus();
  T read{};
  RETURN_IF_ERROR(Read(field, read));
  value = std::move(read);
  return OkStatus();
}

}  // namespace tfjob::objects
