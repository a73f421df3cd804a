#include "runtime/data/text/code_points.h"

#include <utf8proc.h>

#include <algorithm>

#include "runtime/base/check.h"

namespace tfjob::text {
namespace {

constexpr char32_t kDottedI = 0x130;  // the only character whose lower case has two characters
constexpr char32_t kDotAbove = 0x307;

unsigned char ByteAt(std::string_view text, size_t i) {
  return static_cast<unsigned char>(text[i]);
}

// Describes the UTF-8 sequences that start with a given byte.
struct Form {
  size_t bytes = 1;                       // the length; 1 if no sequence starts with this byte
  char32_t bits = kReplacement;           // the bits that the first byte contributes
  unsigned char low = 0x80, high = 0xBF;  // the range of the second byte
};

Form FormOf(unsigned char first) {
  if (first >= 0xC2 && first <= 0xDF) return {2, char32_t{first} & 0x1F};
  if (first == 0xE0) return {3, 0, 0xA0, 0xBF};    // a lower second byte would be overlong
  if (first == 0xED) return {3, 0xD, 0x80, 0x9F};  // a higher second byte would be a surrogate
  if (first >= 0xE1 && first <= 0xEF) return {3, char32_t{first} & 0xF};
  if (first == 0xF0) return {4, 0, 0x90, 0xBF};
  if (first >= 0xF1 && first <= 0xF3) return {4, char32_t{first} & 0x7};
  if (first == 0xF4) return {4, 4, 0x80, 0x8F};  // up to U+10FFFF
  return {};
}

utf8proc_category_t CategoryOf(char32_t value) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(value));
}

bool IsBetween(utf8proc_category_t category, utf8proc_category_t first, utf8proc_category_t last) {
  return category >= first && category <= last;
}

}  // namespace

CodePoint FirstCodePoint(std::string_view text) {
  const unsigned char first = ByteAt(text, 0);
  if (first < 0x80) return {first, 1};
  const Form form = FormOf(first);
  char32_t value = form.bits;
  for (size_t i = 1; i < form.bytes; ++i) {
    const unsigned char low = i == 1 ? form.low : 0x80;
    const unsigned char high = i == 1 ? form.high : 0xBF;
    if (i == text.size() || ByteAt(text, i) < low || ByteAt(text, i) > high)
      return {kReplacement, i};
    value = value << 6 | (ByteAt(text, i) & 0x3F);
  }
  return {value, form.bytes};
}

void AppendUtf8(char32_t value, std::string& to) {
  utf8proc_uint8_t bytes[4];
  const auto count = utf8proc_encode_char(static_cast<utf8proc_int32_t>(value), bytes);
  to.append(reinterpret_cast<const char*>(bytes), static_cast<size_t>(count));
}

bool IsSpace(char32_t value) {
  if (value <= 0x20) return value == 0x20 || (value >= 0x9 && value <= 0xD);
  return value == 0x85 || value == 0xA0 || value == 0x1680 ||
         (value >= 0x2000 && value <= 0x200A) || value == 0x2028 || value == 0x2029 ||
         value == 0x202F || value == 0x205F || value == 0x3000;
}

bool IsLetter(char32_t value) {
  return IsBetween(CategoryOf(value), UTF8PROC_CATEGORY_LU, UTF8PROC_CATEGORY_LO);
}

bool IsNumber(char32_t value) {
  return IsBetween(CategoryOf(value), UTF8PROC_CATEGORY_ND, UTF8PROC_CATEGORY_NO);
}

bool IsPunctuation(char32_t value) {
  if (value < 0x80) {
    const bool other = value <= 0x20 || value == 0x7F;
    const bool letter = (value | 0x20) >= 'a' && (value | 0x20) <= 'z';
    return !other && !letter && !(value >= '0' && value <= '9');
  }
  return IsBetween(CategoryOf(value), UTF8PROC_CATEGORY_PC, UTF8PROC_CATEGORY_PO);
}

bool IsControl(char32_t value) {
  if (value < 0x80) return value < 0x20 || value == 0x7F;
  const utf8proc_category_t category = CategoryOf(value);
  return category == UTF8PROC_CATEGORY_CC || category == UTF8PROC_CATEGORY_CF ||
         category == UTF8PROC_CATEGORY_CO;
}

bool IsNonspacingMark(char32_t value) {
  return CategoryOf(value) == UTF8PROC_CATEGORY_MN;
}

bool IsIdeograph(char32_t value) {
  return (value >= 0x4E00 && value <= 0x9FFF) || (value >= 0x3400 && value <= 0x4DBF) ||
         (value >= 0x20000 && value <= 0x2A6DF) || (value >= 0x2A700 && value <= 0x2B73F) ||
         (value >= 0x2B740 && value <= 0x2B81F) || (value >= 0x2B920 && value <= 0x2CEAF) ||
         (value >= 0xF900 && value <= 0xFAFF) || (value >= 0x2F800 && value <= 0x2FA1F);
}

size_t Decompose(char32_t value, char32_t (&to)[kMostDecomposed]) {
  utf8proc_int32_t parts[kMostDecomposed];
  int last_class = UTF8PROC_BOUNDCLASS_START;
  const auto count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(value), parts,
                                             kMostDecomposed, UTF8PROC_DECOMPOSE, &last_class);
  ENFORCE(count >= 0 && count <= static_cast<utf8proc_ssize_t>(kMostDecomposed),
          "canonical decompositions have at most four characters");
  std::copy_n(parts, count, to);
  return static_cast<size_t>(count);
}

size_t Lower(char32_t value, char32_t (&to)[kMostLower]) {
  if (value < 0x80) {
    to[0] = value >= 'A' && value <= 'Z' ? value | 0x20 : value;
    return 1;
  }
  if (value == kDottedI) {
    to[0] = 'i';
    to[1] = kDotAbove;
    return 2;
  }
  to[0] = static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(value)));
  return 1;
}

int CombiningClass(char32_t value) {
  return utf8proc_get_property(static_cast<utf8proc_int32_t>(value))->combining_class;
}

}  // namespace tfjob::text
