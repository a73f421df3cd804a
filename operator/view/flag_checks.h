// Provides checks for the values of flags. They replace CLI11's own checks of numbers, whose
// messages show the limits of the number type.
#pragma once

#include <functional>
#include <string>

namespace tfjob::view {

// Checks the value of a flag, for CLI::Option::check. Returns "" if the text is valid, and an error
// message otherwise.
using FlagCheck = std::function<std::string(const std::string&)>;
// Returns a check that accepts finite numbers of `least` or more.
FlagCheck AtLeast(int least);

}  // namespace tfjob::view
