// Decodes UTF-8, and classifies characters by the properties of Unicode 15 (https://unicode.org),
// which the library utf8proc provides.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tfjob::text {

inline constexpr char32_t kReplacement = 0xFFFD;

struct CodePoint {
  char32_t value = 0;
  size_t bytes = 0;  // that it takes in the text; at least 1
};

// Returns the first character of a text, which must not be empty. Bytes that are not UTF-8 count as
// U+FFFD, once per maximal part of a character (section 3.9 of the standard), as in Python's
// bytes.decode(errors="replace").
CodePoint FirstCodePoint(std::string_view text);

void AppendUtf8(char32_t value, std::string& to);

bool IsSpace(char32_t value);           // White_Space
bool IsLetter(char32_t value);          // L
bool IsNumber(char32_t value);          // N
bool IsPunctuation(char32_t value);     // P, or a symbol of ASCII
bool IsControl(char32_t value);         // Cc, Cf or Co
bool IsNonspacingMark(char32_t value);  // Mn
// An ideograph of Chinese, Japanese or Korean, in the blocks that BERT lists.
bool IsIdeograph(char32_t value);

// The longest canonical decomposition of one character, and the longest lower case.
inline constexpr size_t kMostDecomposed = 4;
inline constexpr size_t kMostLower = 2;

// Stores the canonical decomposition (NFD) of one character, and returns its length.
size_t Decompose(char32_t value, char32_t (&to)[kMostDecomposed]);
// Stores the lower case of one character, and returns its length.
size_t Lower(char32_t value, char32_t (&to)[kMostLower]);
// Returns the canonical combining class, by which NFD orders marks. 0: not reordered.
int CombiningClass(char32_t value);

}  // namespace tfjob::text
