#include "operator/api/quantity.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace tfjob::api {
namespace {

constexpr __int128 kUnit = 1'000'000'000;  // nanos
constexpr __int128 kMost = kUnit << 63;
constexpr int kMaxDigits = 18;

constexpr std::array<std::pair<std::string_view, int>, 6> kBinary = {
    {{"Ki", 10}, {"Mi", 20}, {"Gi", 30}, {"Ti", 40}, {"Pi", 50}, {"Ei", 60}}};
constexpr std::array<std::pair<std::string_view, int>, 10> kDecimal = {{{"n", -9},
                                                                        {"u", -6},
                                                                        {"m", -3},
                                                                        {"", 0},
                                                                        {"k", 3},
                                                                        {"M", 6},
                                                                        {"G", 9},
                                                                        {"T", 12},
                                                                        {"P", 15},
                                                                        {"E", 18}}};

// Parses a decimal suffix or an exponent into a power of ten; returns false if `suffix` is neither.
bool ParseDecimalSuffix(std::string_view suffix, int& power) {
  for (const auto& [name, value] : kDecimal) {
    if (suffix == name) {
      power = value;
      return true;
    }
  }
  if (suffix.size() < 2 || (suffix[0] != 'e' && suffix[0] != 'E')) return false;
  suffix.remove_prefix(suffix[1] == '+' && !suffix.substr(2).starts_with('-') ? 2 : 1);
  const auto [end, error] = std::from_chars(suffix.data(), suffix.data() + suffix.size(), power);
  return error == std::errc() && end == suffix.data() + suffix.size() && power >= -9 && power <= 18;
}

std::string Digits(__int128 value) {
  if (value == 0) return "0";
  std::string digits;
  for (__int128 rest = value < 0 ? -value : value; rest > 0; rest /= 10) {
    digits.push_back(static_cast<char>('0' + static_cast<int>(rest % 10)));
  }
  if (value < 0) digits.push_back('-');
  std::reverse(digits.begin(), digits.end());
  return digits;
}

}  // namespace

StatusOr<Quantity> ParseQuantity(std::string_view text) {
  const Status malformed =
      InvalidArgument("expected a quantity such as 500m or 8Gi, got \"", text, "\"");
  std::string_view rest = text;
  const bool negative = rest.starts_with('-');
  if (negative || rest.starts_with('+')) rest.remove_prefix(1);
  __int128 digits = 0;
  int count = 0;
  int fraction = 0;
  bool point = false;
  for (; !rest.empty() && (rest[0] == '.' || (rest[0] >= '0' && rest[0] <= '9'));
       rest.remove_prefix(1)) {
    if (rest[0] == '.') {
      if (std::exchange(point, true)) return malformed;
      continue;
    }
    digits = digits * 10 + (rest[0] - '0');
    fraction += point;
    if (++count > kMaxDigits) return malformed;
  }
  if (count == 0) return malformed;

  Quantity quantity;
  int power = 9 - fraction;  // the power of ten that converts `digits` to nanos
  int shift = 0;
  for (const auto& [name, bits] : kBinary) {
    if (rest == name) shift = bits;
  }
  int suffix = 0;
  if (shift == 0 && !ParseDecimalSuffix(rest, suffix)) return malformed;
  power += suffix;
  quantity.binary = shift > 0;
  quantity.nanos = digits;
  for (int i = 0; i < shift; ++i) {
    if ((quantity.nanos *= 2) > (kMost << 1)) return malformed;
  }
  for (; power > 0; --power) {
    if ((quantity.nanos *= 10) > kMost) return malformed;
  }
  // Round up, as Kubernetes does.
  for (; power < 0; ++power) quantity.nanos = (quantity.nanos + 9) / 10;
  if (negative) quantity.nanos = -quantity.nanos;
  return quantity;
}

Quantity operator+(const Quantity& a, const Quantity& b) {
  return {a.nanos + b.nanos, (a.binary || a.nanos == 0) && (b.binary || b.nanos == 0)};
}

std::string ToString(const Quantity& quantity) {
  const __int128 units = quantity.nanos / kUnit;
  if (units * kUnit != quantity.nanos) {
    if (quantity.nanos % 1'000'000 == 0) return Digits(quantity.nanos / 1'000'000) + "m";
    if (quantity.nanos % 1'000 == 0) return Digits(quantity.nanos / 1'000) + "u";
    return Digits(quantity.nanos) + "n";
  }
  if (quantity.binary && units != 0) {
    for (auto at = kBinary.rbegin(); at != kBinary.rend(); ++at) {
      const __int128 unit = __int128{1} << at->second;
      if (units % unit == 0) return Digits(units / unit) + std::string(at->first);
    }
  }
  return Digits(units);
}

}  // namespace tfjob::api
