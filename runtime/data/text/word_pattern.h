// Divides texts into the parts that GPT-2 encodes separately, as its regular expression does:
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
// https://github.com/openai/gpt-2/blob/master/src/encoder.py
#pragma once

#include <cstddef>
#include <string_view>

namespace tfjob::text {

// Returns the number of bytes of the first part of a text, which must not be empty. Bytes that are
// not UTF-8 count as U+FFFD.
size_t FirstPart(std::string_view text);

}  // namespace tfjob::text
