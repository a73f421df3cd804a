// Reads small text files, such as vocabularies, line by line.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "runtime/base/status.h"

namespace tfjob::text {

inline constexpr uint64_t kMostFileBytes = 256 << 20;
// The maximum size of a tokenizer's file. The largest published files have about 10 MB, and a
// tokenizer needs up to 50 bytes of memory per byte of its files.
inline constexpr uint64_t kMostTokenizerBytes = 32 << 20;

// Returns the content of a file. Returns InvalidArgument if it has more than `most` bytes.
StatusOr<std::string> ReadSmallFile(const std::string& path, uint64_t most = kMostFileBytes);

// Calls `visit` for each line of `text`, without its end ("\n" or "\r\n") and without a byte order
// mark. Lines are numbered from 1. Stops at the first error from `visit`, and returns
// InvalidArgument for a line that is not UTF-8. Adds the place, such as "vocab.txt: line 7", to
// both errors.
Status VisitLines(std::string_view text, const std::string& path,
                  absl::FunctionRef<Status(std::string_view line, int64_t number)> visit);

}  // namespace tfjob::text
