// Splits text into words as BERT's BasicTokenizer does
// (https://github.com/google-research/bert/blob/master/tokenization.py): drops control characters,
// splits at white space, and makes every punctuation character and every ideograph a word.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"

namespace tfjob::text {

struct BasicOptions {
  bool lower_case = true;
  bool strip_accents = true;  // decompose characters (NFD), and drop nonspacing marks
};

struct Word {
  std::string_view text;  // UTF-8; only the beginning of the word if too_long is set
  bool too_long = false;  // the word has more than BasicTokenizer::kMostCharacters
};

// Splits one string after another, and keeps its buffers. Only one thread may use a tokenizer.
class BasicTokenizer {
 public:
  static constexpr size_t kMostCharacters = 100;  // a longer word is unknown, as in BERT

  using OnWord = absl::FunctionRef<bool(const Word& word)>;

  explicit BasicTokenizer(BasicOptions options) : options_(options) {}

  // Calls `on_word` for each word until `on_word` returns false. A word is valid only during the
  // call.
  void Split(std::string_view text, OnWord on_word);

 private:
  // A combining mark that has not yet been appended to the word, because marks that follow may come
  // before it in the canonical order.
  struct Mark {
    char32_t value = 0;
    int combining_class = 0;
  };

  // The functions that return bool return false once `on_word` has returned false.
  bool AddCharacter(char32_t value, OnWord on_word);
  bool AddDecomposed(char32_t value, OnWord on_word);
  bool AddStarter(char32_t value, OnWord on_word);
  void AddWaitingMarks();
  void Append(char32_t value);
  bool EndWord(OnWord on_word);

  const BasicOptions options_;
  std::string word_;
  size_t characters_ = 0;  // of word_
  std::vector<Mark> marks_;
};

}  // namespace tfjob::text
