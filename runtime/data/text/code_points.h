// Decodes UTF-8, and classifies characters by their properties in Unicode 15 (https://unicode.org),
// which the library utf8proc provides.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tfjob::text {

inline constexpr char32_t kReplacement = 0xFFFD;

struct CodePoint {
  char32_t value = 0;
  size_t bytes = 0;  // its length in the text; at least 1
};

// Returns the first character of `text`, which must not be empty. Returns U+FFFD for bytes that are
// not UTF-8: one for each maximal subpart of a character (section 3.9 of the standard), as Python's
// bytes.decode(errors="replace") does.
CodePoint FirstCodePoint(std::string_view text);

void AppendUtf8(char32_t value, std::string& to);

// Return whether a character has one of the properties or categories in the comment behind the
// function.
bool IsSpace(char32_t value);           // White_Space
bool IsLetter(char32_t value);          // L
bool IsNumber(char32_t value);          // N
bool IsPunctuation(char32_t value);     // P, or a symbol of ASCII
bool IsControl(char32_t value);         // Cc, Cf or Co
bool IsNonspacingMark(char32_t value);  // Mn
// Returns whether a character is an ideograph that is a separate word. Uses the ranges of the
// package `tokenizers`, which are the same as BERT's, except that one range starts at U+2B920
// instead of U+2B820.
bool IsIdeograph(char32_t value);

// The maximum numbers of characters in the decomposition and in the lower case of a character.
inline constexpr size_t kMostDecomposed = 4;
inline constexpr size_t kMostLower = 2;

// Stores the canonical decomposition (NFD) of one character, and returns its length.
size_t Decompose(char32_t value, char32_t (&to)[kMostDecomposed]);
// Stores the lower case of one character, and returns its length.
size_t Lower(char32_t value, char32_t (&to)[kMostLower]);
// Returns the canonical combining class, by which NFD orders marks, or 0 for characters that NFD
// does not reorder.
int CombiningClass(char32_t value);

}  // namespace tfjob::text
