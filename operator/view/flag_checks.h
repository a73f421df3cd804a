// What the values of flags are held to. The parser's own checks of numbers print the limits of the type.
#pragma once

#include <functional>
#include <string>

namespace tfjob::view {

// For CLI::Option::check: "" for a finite number of `least` or more, otherwise what is wrong with the text.
using FlagCheck = std::function<std::string(const std::string&)>;
FlagCheck AtLeast(int least);

}  // namespace tfjob::view
