// Checks for the values of flags. The parser's own number checks print the limits of the type.
#pragma once

#include <functional>
#include <string>

namespace tfjob::view {

// A check for CLI::Option::check. Returns "" if the text is valid, otherwise an error message.
using FlagCheck = std::function<std::string(const std::string&)>;
// Returns a check that accepts finite numbers of `least` or more.
FlagCheck AtLeast(int least);

}  // namespace tfjob::view
