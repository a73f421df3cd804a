// Splits text into words as BERT's BasicTokenizer does
// (https://github.com/google-research/bert/blob/master/tokenization.py): drops control characters,
// and splits at white space; every punctuation character and every ideograph is a separate word.
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

// Splits one string after another. Keeps its buffers from string to string. Only one thread may use
// a tokenizer.
class BasicTokenizer {
 public:
  static constexpr size_t kMostCharacters = 100;  // longer words are unknown, as in BERT

  using OnWord = absl::FunctionRef<bool(const Word& word)>;

  explicit BasicTokenizer(BasicOptions options) : options_(options) {}

  // Calls `on_word` for each word until `on_word` returns false. The word is valid only during the
  // call.
  void Split(std::string_view text, OnWord on_word);

 private:
  // A combining mark that has not been appended to the word yet, because later marks in the text
  // may precede it in canonical order.
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
  size_t characters_ = 0;  // the number of characters in word_
  std::vector<Mark> marks_;
};

}  // namespace tfjob::text
