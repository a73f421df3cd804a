// Reads the values in a line of a table of numbers.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace tfjob::data {

// Stores the values of a line in `fields`, without the white space around them and without their
// quotation marks. A value must not contain the delimiter.
void SplitCsvLine(std::string_view line, char delimiter, std::vector<std::string_view>& fields);

// Returns nullopt if the text is not a finite number.
std::optional<double> ParseCsvNumber(std::string_view text);

}  // namespace tfjob::data
