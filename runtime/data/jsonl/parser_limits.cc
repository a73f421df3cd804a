#include "runtime/data/jsonl/parser_limits.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/numbers.h"

namespace tfjob::data {
namespace {

constexpr int kMostLevels = 100;  // more than any shape has, and fewer than JsonDocument allows
constexpr std::string_view kOfNumbers = "0123456789+-.eE";
constexpr std::string_view kLargest = "1.7976931348623157e308";
constexpr std::string_view kLowest = "-1.7976931348623157e308";
constexpr std::string_view kReplacement = "\\ufffd";

// Returns the code unit of an escape sequence such as "\ud83d" at the front, or nullopt.
std::optional<uint32_t> CodeUnit(std::string_view text) {
  if (text.size() < 6 || text[0] != '\\' || text[1] != 'u') return std::nullopt;
  uint32_t unit = 0;
  const auto [end, error] = std::from_chars(text.data() + 2, text.data() + 6, unit, 16);
  return error == std::errc() && end == text.data() + 6 ? std::optional(unit) : std::nullopt;
}

bool IsHigh(std::optional<uint32_t> unit) {
  return unit && *unit >= 0xD800 && *unit < 0xDC00;
}
bool IsLow(std::optional<uint32_t> unit) {
  return unit && *unit >= 0xDC00 && *unit < 0xE000;
}

// Returns the size of the string at the front, with its quotation marks. An unclosed string extends
// to the end of `text`.
size_t StringSize(std::string_view text) {
  size_t at = 1;
  while (at < text.size() && text[at] != '"') at += text[at] == '\\' ? 2 : 1;
  return std::min(at + 1, text.size());
}

class Rewriter {
 public:
  explicit Rewriter(std::string_view text) : rest_(text) { copy_.reserve(text.size() + 64); }

  std::optional<std::string> Run() && {
    while (!rest_.empty()) {
      const char c = rest_.front();
      if (c == '"') {
        String(Take(StringSize(rest_)));
      } else if (c == '-' || (c >= '0' && c <= '9')) {
        Number(Take(std::min(rest_.find_first_not_of(kOfNumbers), rest_.size())));
      } else {
        copy_ += Take(1);
        if (c == '[' || c == '{') Open();
        if (c == ']' || c == '}') Close();
      }
    }
    return changed_ ? std::optional(std::move(copy_)) : std::nullopt;
  }

 private:
  std::string_view Take(size_t size) {
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }

  void Replace(std::string_view by) {
    copy_ += by;
    changed_ = true;
  }

  void String(std::string_view text) {
    while (!text.empty()) {
      const std::optional<uint32_t> unit = CodeUnit(text);
      const bool pair =
          IsHigh(unit) && IsLow(text.size() < 12 ? std::nullopt : CodeUnit(text.substr(6)));
      size_t size = pair ? 12 : unit ? 6 : text[0] == '\\' ? 2 : 1;
      size = std::min(size, text.size());
      if (!pair && (IsHigh(unit) || IsLow(unit))) {
        Replace(kReplacement);
      } else {
        copy_ += text.substr(0, size);
      }
      text.remove_prefix(size);
    }
  }

  void Number(std::string_view number) {
    double value = 0;
    const bool valid = absl::SimpleAtod(absl::string_view(number.data(), number.size()), &value);
    if (valid && std::isinf(value)) {
      // Replace only valid JSON numbers: text that is not JSON, such as "01e999", must not become
      // JSON.
      if (IsNumber(number)) return Replace(number.front() == '-' ? kLowest : kLargest);
    }
    copy_ += number;
    if (valid && IsLongInteger(number)) Replace("e0");
  }

  // Returns whether a number that SimpleAtod accepts is also written as JSON requires: without a
  // plus sign or leading zeros, and with digits on both sides of the point.
  static bool IsNumber(std::string_view number) {
    if (number.starts_with('-')) number.remove_prefix(1);
    const auto is_digit = [&](size_t at) {
      return at < number.size() && number[at] >= '0' && number[at] <= '9';
    };
    const size_t point = number.find('.');
    const bool zero = number.starts_with('0') && is_digit(1);
    return is_digit(0) && !zero && (point == std::string_view::npos || is_digit(point + 1));
  }

  // Returns whether the number is an integer that does not fit in 64 bits.
  static bool IsLongInteger(std::string_view number) {
    if (number.find_first_of("+.eE") != std::string_view::npos) return false;
    const char* const end = number.data() + number.size();
    int64_t integer = 0;
    uint64_t positive = 0;
    return std::from_chars(number.data(), end, integer).ec == std::errc::result_out_of_range &&
           std::from_chars(number.data(), end, positive).ec != std::errc();
  }

  void Open() {
    if (++level_ == kMostLevels + 1) deep_ = copy_.size() - 1;
  }

  void Close() {
    if (level_-- != kMostLevels + 1) return;
    // Check the value here, because the parser will get null instead.
    if (!nlohmann::json::accept(std::string_view(copy_).substr(deep_))) return;
    copy_.resize(deep_);
    Replace("null");
  }

  std::string_view rest_;
  std::string copy_;
  bool changed_ = false;
  int level_ = 0;
  size_t deep_ = 0;  // start of the too deeply nested value in copy_
};

}  // namespace

std::optional<std::string> WithinParserLimits(std::string_view text) {
  return Rewriter(text).Run();
}

std::string_view NotInJson(std::string_view text) {
  while (!text.empty()) {
    for (const std::string_view name : {"NaN", "Infinity"}) {
      if (text.starts_with(name)) return name;
    }
    text.remove_prefix(text.front() == '"' ? StringSize(text) : 1);
  }
  return {};
}

}  // namespace tfjob::data
