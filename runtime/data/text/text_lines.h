// Reads small text files, such as vocabularies, line by line.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "runtime/base/status.h"

namespace tfjob::text {

inline constexpr uint64_t kMostFileBytes = 256 << 20;
// The largest file of a tokenizer that is read. The largest published ones have about 10 MB. A
// tokenizer takes up to 50 bytes of memory per byte of its files.
inline constexpr uint64_t kMostTokenizerBytes = 32 << 20;

// Returns the content. Returns InvalidArgument if the file has more than `most` bytes.
StatusOr<std::string> ReadSmallFile(const std::string& path, uint64_t most = kMostFileBytes);

// Calls `visit` for each line of a text, without its end ("\n" or "\r\n") and without a byte order
// mark. Lines are numbered from 1. Adds the place ("vocab.txt: line 7") to the errors of `visit`,
// and to InvalidArgument for a line that is not UTF-8.
Status VisitLines(std::string_view text, const std::string& path,
                  absl::FunctionRef<Status(std::string_view line, int64_t number)> visit);

}  // namespace tfjob::text
