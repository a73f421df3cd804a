#include "runtime/data/text/token_ids.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "runtime/base/fnv1a.h"
#include "runtime/data/text/text_quote.h"

namespace tfjob::text {

std::string Describe(const JsonView& value) {
  if (value.IsObject() || value.IsArray()) return std::string(value.TypeName());
  return DescribeJson(ToJson(value));
}

StatusOr<TokenIds> TokenIds::Parse(std::string_view json) {
  constexpr std::string_view kExpected = "expected an object that maps tokens to ids";
  if (json.empty()) return InvalidArgument(kExpected, ", but it is missing");
  TokenIds made;
  ASSIGN_OR_RETURN(const JsonView root, made.document_->Parse(json));
  if (!root.IsObject()) return InvalidArgument(kExpected, ", got ", Describe(root));
  Fnv1a hash;
  RETURN_IF_ERROR(root.ForEachMember([&](std::string_view token, JsonView value) -> Status {
    const int64_t id = value.IfInt().value_or(-1);
    if (id < 0 || id > kMostId) {
      return InvalidArgument("token ", Quote(token), ": expected an id from 0 to ", kMostId,
                             ", got ", Describe(value));
    }
    if (!made.tokens_.emplace(token, static_cast<int32_t>(id)).second)
      return InvalidArgument("expected each token once, got ", Quote(token), " twice");
    hash.Add("\n").Add(token).AddWord(static_cast<uint64_t>(id));
    made.size_ = std::max(made.size_, id + 1);
    return OkStatus();
  }));
  made.hash_ = hash.hash();
  return made;
}

std::optional<int32_t> TokenIds::Find(std::string_view token) const {
  const auto found = tokens_.find(token);
  return found == tokens_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace tfjob::text
