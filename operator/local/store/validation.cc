#include "operator/local/store/validation.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "operator/objects/metadata.h"

namespace tfjob::store {
namespace {

constexpr size_t kMaximumLabel = 63;
constexpr size_t kMaximumSubdomain = 253;

bool IsLower(char c) {
  return c >= 'a' && c <= 'z';
}
bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}
bool IsAlphanumeric(char c) {
  return IsLower(c) || IsDigit(c) || (c >= 'A' && c <= 'Z');
}

// Checks one part of a subdomain. Limits only its characters, because the length limit applies to
// the whole subdomain.
bool IsDnsPart(std::string_view text) {
  if (text.empty() || text.front() == '-' || text.back() == '-') return false;
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return IsLower(c) || IsDigit(c) || c == '-'; });
}

// Checks label values and the names in label keys: alphanumeric characters at both ends, and '-',
// '_' and '.' between them.
bool IsQualifiedWord(std::string_view text) {
  if (text.empty() || text.size() > kMaximumLabel) return false;
  if (!IsAlphanumeric(text.front()) || !IsAlphanumeric(text.back())) return false;
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return IsAlphanumeric(c) || c == '-' || c == '_' || c == '.'; });
}

bool IsLabelKey(std::string_view text) {
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos) return IsQualifiedWord(text);
  return IsDnsSubdomain(text.substr(0, slash)) && IsQualifiedWord(text.substr(slash + 1));
}

Status Invalid(objects::Kind kind, const objects::ObjectMeta& metadata, std::string_view path,
               std::string_view value, std::string_view expected) {
  return InvalidArgument(client::Name(kind), " \"", metadata.name, "\" is invalid: ", path,
                         ": Invalid value: \"", value, "\": ", expected);
}

Status Required(const objects::ObjectMeta& metadata, std::string_view path) {
  return InvalidArgument("Pod \"", metadata.name, "\" is invalid: ", path, ": Required value");
}

// Checks the name of a container or volume. The name becomes a part of paths.
Status ValidatePartName(const JsonField& name, const objects::ObjectMeta& metadata) {
  ASSIGN_OR_RETURN(const std::string text, name.StringOr(""));
  if (text.empty()) return Required(metadata, name.path());
  if (text.size() <= kMaximumLabel && IsDnsPart(text)) return OkStatus();
  return Invalid(objects::Kind::kPod, metadata, name.path(), text,
                 "a name is at most 63 lower case letters, digits and '-', with a letter or digit "
                 "at both ends");
}

Status ValidatePod(const Json& object, const objects::ObjectMeta& metadata) {
  const JsonField spec = JsonField(object)["spec"];
  const JsonField containers = spec["containers"];
  if (!containers.present() || !containers.value()->is_array() || containers.value()->empty()) {
    return Required(metadata, containers.path());
  }
  for (const char* list : {"volumes", "initContainers", "containers"}) {
    ASSIGN_OR_RETURN(const auto elements, spec[list].Elements());
    for (const JsonField& element : elements) {
      RETURN_IF_ERROR(ValidatePartName(element["name"], metadata));
    }
  }
  return OkStatus();
}

}  // namespace

bool IsDnsSubdomain(std::string_view text) {
  if (text.size() > kMaximumSubdomain) return false;
  while (true) {
    const size_t dot = text.find('.');
    if (!IsDnsPart(text.substr(0, dot))) return false;
    if (dot == std::string_view::npos) return true;
    text.remove_prefix(dot + 1);
  }
}

bool IsDnsLabel(std::string_view text) {
  return text.size() <= kMaximumLabel && IsDnsPart(text) && IsLower(text.front());
}

Status ValidateLabels(objects::Kind kind, const objects::ObjectMeta& metadata) {
  for (const auto& [key, value] : metadata.labels) {
    if (!IsLabelKey(key)) {
      return Invalid(kind, metadata, "metadata.labels", key,
                     "a label key is [prefix/]name, the name at most 63 letters, digits, '-', '_', "
                     "'.', with a letter or digit at both ends");
    }
    if (!value.empty() && !IsQualifiedWord(value)) {
      return Invalid(kind, metadata, StrCat("metadata.labels[", key, "]"), value,
                     "a label value is at most 63 letters, digits, '-', '_', '.', with a letter or "
                     "digit at both ends");
    }
  }
  return OkStatus();
}

Status ValidateNew(objects::Kind kind, const Json& object, const objects::ObjectMeta& metadata) {
  if (kind == objects::Kind::kService && !IsDnsLabel(metadata.name)) {
    return Invalid(kind, metadata, "metadata.name", metadata.name,
                   "a service's name is at most 63 lower case letters, digits and '-', and starts "
                   "with a letter");
  }
  if (!IsDnsSubdomain(metadata.name)) {
    return Invalid(kind, metadata, "metadata.name", metadata.name,
                   "a name is lower case letters, digits, '-' and '.', with a letter or digit at "
                   "both ends, at most 253 characters");
  }
  if (client::IsClusterScoped(kind)) {
    if (!metadata.name_space.empty()) {
      return Invalid(kind, metadata, "metadata.namespace", metadata.name_space,
                     "objects of this kind have no namespace");
    }
  } else if (metadata.name_space.size() > kMaximumLabel || !IsDnsPart(metadata.name_space)) {
    return Invalid(kind, metadata, "metadata.namespace", metadata.name_space,
                   "a namespace is at most 63 lower case letters, digits and '-'");
  }
  RETURN_IF_ERROR(ValidateLabels(kind, metadata));
  return kind == objects::Kind::kPod ? ValidatePod(object, metadata) : OkStatus();
}

}  // namespace tfjob::store
