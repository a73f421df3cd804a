// Summarises a file of records of any format.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "runtime/base/status.h"
#include "runtime/data/inspect/file_format.h"
#include "runtime/data/records/record_format.h"

namespace tfjob::data {

// Adds the fields of an intact record to the summary and, unless `values` is null, the text of each
// value to `values`.
using DescribeRecord = absl::FunctionRef<Status(std::string_view record, FileSummary& summary,
                                                std::vector<std::string>* values)>;

// Summarises all records of a file. The summary calls the format `name`.
StatusOr<FileSummary> SummariseRecords(const std::string& path, std::string_view name,
                                       const RecordFormat& format, const SummaryOptions& options,
                                       const StopSource& stop, DescribeRecord describe);

}  // namespace tfjob::data
