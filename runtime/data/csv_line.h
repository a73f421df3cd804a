// Splits the lines of a table of numbers into values.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"

namespace tfjob::data {

struct CsvOptions;

// Splits a line at each delimiter, even within quotation marks. Stores the values in `fields`,
// without surrounding white space and quotation marks.
void SplitCsvLine(std::string_view line, char delimiter, std::vector<std::string_view>& fields);

// Parses a decimal number. Returns nullopt if `text` is not a finite number.
std::optional<double> ParseCsvNumber(std::string_view text);

struct CsvNumberColumns {
  size_t count = 0;
  size_t label = 0;  // the index of the label's column
};

// Determines the columns from the fields of the first line: the header, if there is one, or a row.
// Returns InvalidArgument if there are fewer than two columns, or if there is no label column.
StatusOr<CsvNumberColumns> FindCsvColumns(const CsvOptions& options,
                                          const std::vector<std::string_view>& first);

}  // namespace tfjob::data
