#include "operator/objects/fields.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace tfjob::objects {
namespace {

constexpr Time kYear10000{std::chrono::seconds(253402300800)};

}  // namespace

Status Read(const JsonField& field, std::string& value) {
  if (!field.present()) return OkStatus();
  ASSIGN_OR_RETURN(value, field.String());
  return OkStatus();
}

Status Read(const JsonField& field, bool& value) {
  if (!field.present()) return OkStatus();
  ASSIGN_OR_RETURN(value, field.Bool());
  return OkStatus();
}

Status Read(const JsonField& field, int32_t& value) {
  if (!field.present()) return OkStatus();
  ASSIGN_OR_RETURN(value, field.Int32());
  return OkStatus();
}

Status Read(const JsonField& field, int64_t& value) {
  if (!field.present()) return OkStatus();
  ASSIGN_OR_RETURN(value, field.Int());
  return OkStatus();
}

Status Read(const JsonField& field, Time& value) {
  if (!field.present()) return OkStatus();
  ASSIGN_OR_RETURN(const std::string text, field.String());
  const StatusOr<Time> time = ParseTime(text);
  // The parser knows more than RFC 3339: "infinite-future", years of other lengths.
  const bool plain = text.size() >= 20 && text[4] == '-';
  if (!time.ok() || !plain || *time >= kYear10000)
    return field.Mismatch("an RFC 3339 time such as \"2026-11-21T09:30:00Z\"");
  value = TruncateToSeconds(std::max(*time, Time()));
  return OkStatus();
}

Status Read(const JsonField& field, std::optional<Time>& value) {
  Time time;
  RETURN_IF_ERROR(Read(field, time));
  if (time != Time()) value = time;
  return OkStatus();
}

Status Read(const JsonField& field, std::vector<std::string>& value) {
  if (!field.present()) return OkStatus();
  ASSIGN_OR_RETURN(const auto elements, field.Elements());
  value.clear();
  for (const JsonField& element : elements) {
    ASSIGN_OR_RETURN(std::string text, element.String());
    value.push_back(std::move(text));
  }
  return OkStatus();
}

Status Read(const JsonField& field, std::map<std::string, std::string>& value) {
  if (!field.present()) return OkStatus();
  ASSIGN_OR_RETURN(const auto members, field.Members());
  value.clear();
  for (const auto& [key, member] : members) {
    if (!IsUtf8(key)) return field.Mismatch("keys in UTF-8");
    RETURN_IF_ERROR(Read(member, value[key]));
  }
  return OkStatus();
}

}  // namespace tfjob::objects
