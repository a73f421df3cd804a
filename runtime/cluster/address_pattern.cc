#include "runtime/cluster/address_pattern.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "runtime/base/json.h"

namespace tfjob::cluster {
namespace {

constexpr std::string_view kPlaceholderEnd = "index}";
constexpr int32_t kMostFirst = 65535;

// Parses a number that has no sign.
bool ParseNumber(std::string_view text, int32_t& number) {
  const auto is_digit = [](unsigned char byte) { return absl::ascii_isdigit(byte); };
  return std::ranges::all_of(text, is_digit) && absl::SimpleAtoi(std::string(text), &number);
}

Status NotAPattern(std::string_view text) {
  return InvalidArgument(
      "expected \"host:port\" with one placeholder, {index} or {NUMBER+index} with a number from 0 "
      "to ",
      kMostFirst, ", such as \"mnist-worker-{index}.ns.svc:2222\", got \"", text, "\"");
}

}  // namespace

bool IsAddress(std::string_view text) {
  const size_t colon = text.rfind(':');
  int32_t port = 0;
  return colon != std::string_view::npos && colon > 0 &&
         ParseNumber(text.substr(colon + 1), port) && port >= 1 && port <= 65535;
}

std::string AddressPattern::operator()(int32_t index) const {
  return StrCat(before, int64_t{first} + index, after);
}

std::string Print(const AddressPattern& pattern) {
  const std::string number = pattern.first == 0 ? "" : StrCat(pattern.first, "+");
  return StrCat(pattern.before, "{", number, kPlaceholderEnd, pattern.after);
}

StatusOr<AddressPattern> ParseAddressPattern(std::string_view text) {
  const size_t open = text.find('{'), close = text.find(kPlaceholderEnd);
  if (open == std::string_view::npos || close == std::string_view::npos || close <= open) {
    return NotAPattern(text);
  }
  AddressPattern pattern{.before = std::string(text.substr(0, open)),
                         .after = std::string(text.substr(close + kPlaceholderEnd.size()))};
  const std::string_view number = text.substr(open + 1, close - open - 1);
  const bool is_sum =
      number.ends_with('+') && ParseNumber(number.substr(0, number.size() - 1), pattern.first);
  if (!number.empty() && (!is_sum || pattern.first > kMostFirst)) return NotAPattern(text);
  const bool has_braces =
      StrCat(pattern.before, pattern.after).find_first_of("{}") != std::string::npos;
  if (has_braces || !IsAddress(pattern(0))) return NotAPattern(text);
  return pattern;
}

std::string Print(const AddressPatterns& patterns) {
  nlohmann::ordered_json document = nlohmann::ordered_json::object();
  for (const auto& [type, pattern] : patterns) document[type] = Print(pattern);
  return document.dump();
}

StatusOr<AddressPatterns> ParseAddressPatterns(std::string_view text) {
  constexpr std::array<std::string_view, 4> kTypes = {"chief", "master", "worker", "evaluator"};
  ASSIGN_OR_RETURN(const Json document, ParseJson(text, kAddressPatternsVariable));
  const JsonField root(document, kAddressPatternsVariable);
  ASSIGN_OR_RETURN(const auto members, root.Members());
  AddressPatterns patterns;
  for (const auto& [type, field] : members) {
    if (std::ranges::find(kTypes, type) == kTypes.end()) {
      return InvalidArgument(kAddressPatternsVariable,
                             ": expected the types chief, master, worker and evaluator, got \"",
                             type, "\"");
    }
    ASSIGN_OR_RETURN(const std::string pattern, field.String());
    StatusOr<AddressPattern> parsed = ParseAddressPattern(pattern);
    if (!parsed.ok())
      return Annotate(parsed.status(), StrCat(kAddressPatternsVariable, ": ", type));
    patterns[type] = *std::move(parsed);
  }
  if (patterns.contains("chief") && patterns.contains("master")) {
    return InvalidArgument(kAddressPatternsVariable,
                           ": has both chief and master; keep one of them");
  }
  return patterns;
}

}  // namespace tfjob::cluster
