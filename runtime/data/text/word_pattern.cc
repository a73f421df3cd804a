#include "runtime/data/text/word_pattern.h"

#include <algorithm>

#include "runtime/data/text/code_points.h"

namespace tfjob::text {
namespace {

enum class Kind { kSpace, kLetter, kNumber, kOther };

Kind KindOf(char32_t value) {
  if (IsSpace(value)) return Kind::kSpace;
  if (value < 0x80) {
    if ((value | 0x20) >= 'a' && (value | 0x20) <= 'z') return Kind::kLetter;
    return value >= '0' && value <= '9' ? Kind::kNumber : Kind::kOther;
  }
  if (IsLetter(value)) return Kind::kLetter;
  return IsNumber(value) ? Kind::kNumber : Kind::kOther;
}

// Returns the length of an English suffix such as "'ll", or 0.
size_t Suffix(std::string_view text) {
  for (const std::string_view suffix : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"}) {
    if (text.starts_with(suffix)) return suffix.size();
  }
  return 0;
}

// Describes the characters of one kind at the beginning of a string.
struct Run {
  size_t bytes = 0;
  size_t last = 0;  // bytes of the last character
};

Run RunOf(Kind kind, std::string_view text) {
  Run run;
  while (run.bytes < text.size()) {
    const CodePoint next = FirstCodePoint(text.substr(run.bytes));
    if (KindOf(next.value) != kind) break;
    run.bytes += next.bytes;
    run.last = next.bytes;
  }
  return run;
}

}  // namespace

size_t FirstPart(std::string_view text) {
  if (text[0] == '\'') {
    const size_t suffix = Suffix(text);
    if (suffix > 0) return suffix;
  }
  const size_t space = text[0] == ' ' ? 1 : 0;
  if (space < text.size()) {
    const std::string_view rest = text.substr(space);
    const Kind kind = KindOf(FirstCodePoint(rest).value);
    if (kind != Kind::kSpace) return space + RunOf(kind, rest).bytes;
  }
  // If other text follows the white space, the last white space character belongs to the next part,
  // unless it is the only one.
  const Run run = RunOf(Kind::kSpace, text);
  return run.bytes == text.size() || run.bytes == run.last ? run.bytes : run.bytes - run.last;
}

}  // namespace tfjob::text
