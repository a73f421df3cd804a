#include "runtime/data/text/basic_tokenizer.h"

#include <algorithm>

#include "runtime/data/text/code_points.h"

namespace tfjob::text {
namespace {

bool IsDropped(char32_t value) {
  if (value == '\t' || value == '\n' || value == '\r') return false;
  return value == kReplacement || IsControl(value);  // also drops U+0000
}

}  // namespace

void BasicTokenizer::Split(std::string_view text, OnWord on_word) {
  word_.clear();
  marks_.clear();
  characters_ = 0;
  while (!text.empty()) {
    const CodePoint next = FirstCodePoint(text);
    text.remove_prefix(next.bytes);
    if (IsDropped(next.value)) continue;
    if (!AddCharacter(next.value, on_word)) return;
  }
  EndWord(on_word);
}

bool BasicTokenizer::AddCharacter(char32_t value, OnWord on_word) {
  if (IsSpace(value)) return EndWord(on_word);
  // As in BERT, ideographs are recognised before characters are decomposed.
  const bool ideograph = IsIdeograph(value);
  if (ideograph && !EndWord(on_word)) return false;
  // ASCII characters do not decompose, but a sequence of marks ends before an ASCII character.
  const bool decomposes = options_.strip_accents && (value >= 0x80 || !marks_.empty());
  if (!(decomposes ? AddDecomposed(value, on_word) : AddStarter(value, on_word))) return false;
  return !ideograph || EndWord(on_word);
}

bool BasicTokenizer::AddDecomposed(char32_t value, OnWord on_word) {
  char32_t parts[kMostDecomposed];
  const size_t count = Decompose(value, parts);
  for (size_t i = 0; i < count; ++i) {
    const int combining_class = CombiningClass(parts[i]);
    const bool dropped = IsNonspacingMark(parts[i]);
    if (combining_class == 0) {
      AddWaitingMarks();
      if (!dropped && !AddStarter(parts[i], on_word)) return false;
    } else if (!dropped && marks_.size() <= kMostCharacters) {  // with more, the word is too long
      marks_.push_back({parts[i], combining_class});
    }
  }
  return true;
}

bool BasicTokenizer::AddStarter(char32_t value, OnWord on_word) {
  char32_t lower[kMostLower] = {value};
  const size_t count = options_.lower_case ? Lower(value, lower) : 1;
  for (size_t i = 0; i < count; ++i) {
    const bool alone = IsPunctuation(lower[i]);
    if (alone && !EndWord(on_word)) return false;
    Append(lower[i]);
    if (alone && !EndWord(on_word)) return false;
  }
  return true;
}

// Appends the waiting marks to the word. Marks need no further checks, because they are neither
// punctuation nor upper case.
void BasicTokenizer::AddWaitingMarks() {
  // Use an insertion sort, because there are few marks, and std::stable_sort would allocate memory.
  for (auto mark = marks_.begin(); mark != marks_.end(); ++mark) {
    const auto place = std::ranges::upper_bound(marks_.begin(), mark, mark->combining_class, {},
                                                &Mark::combining_class);
    std::rotate(place, mark, mark + 1);
  }
  for (const Mark& mark : marks_) Append(mark.value);
  marks_.clear();
}

void BasicTokenizer::Append(char32_t value) {
  if (++characters_ <= kMostCharacters) AppendUtf8(value, word_);
}

bool BasicTokenizer::EndWord(OnWord on_word) {
  AddWaitingMarks();
  if (characters_ == 0) return true;
  const bool more = on_word({.text = word_, .too_long = characters_ > kMostCharacters});
  word_.clear();
  characters_ = 0;
  return more;
}

}  // namespace tfjob::text
