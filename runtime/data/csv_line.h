// Splits the lines of a table of numbers into values.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace tfjob::data {

// Splits a line at each delimiter, even within quotation marks. Stores the values in `fields`,
// without surrounding white space and quotation marks.
void SplitCsvLine(std::string_view line, char delimiter, std::vector<std::string_view>& fields);

// Parses a decimal number. Returns nullopt if `text` is not a finite number.
std::optional<double> ParseCsvNumber(std::string_view text);

}  // namespace tfjob::data
