// Makes text that a container wrote safe for events, conditions and terminals.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tfjob::objects {

// Returns the last line of `text` that is not blank, truncated to `most` bytes; a truncated line
// ends with "…". Both in a traceback and at the end of a log, the last line is the one that names
// the error. Characters that could change how a terminal displays the line become spaces: control
// characters, including those of C1, and Unicode's characters for line breaks and text direction.
// Bytes that are not UTF-8 become '?'. Runs of spaces become one.
std::string LastLine(std::string_view text, size_t most = 512);

}  // namespace tfjob::objects
