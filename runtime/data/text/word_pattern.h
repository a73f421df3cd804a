// Splits text into the parts that GPT-2 encodes separately, which match this regular expression:
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
// https://github.com/openai/gpt-2/blob/master/src/encoder.py
#pragma once

#include <cstddef>
#include <string_view>

namespace tfjob::text {

// Returns the number of bytes in the first part of `text`, which must not be empty. Reads bytes
// that are not UTF-8 as U+FFFD.
size_t FirstPart(std::string_view text);

}  // namespace tfjob::text
