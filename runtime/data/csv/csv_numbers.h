// Opens a CSV file of numbers.
#pragma once

#include <memory>

#include "runtime/base/status.h"
#include "runtime/data/dataset.h"
#include "runtime/data/source.h"
#include "runtime/data/storage.h"

namespace tfjob::data {

// Opens the file. Keeps its values in memory if the file is small enough (storage.h): see LoadCsv
// (dataset.h). Otherwise, reads each line when a batch needs it (records/record_source.h).
// RowReader::Read then returns InvalidArgument, with the file and the line, if a line does not have
// the right number of columns, or if a value is not a finite number. The fields and their values
// are the same in both cases.
StatusOr<std::shared_ptr<const Source>> OpenCsv(const CsvOptions& options,
                                                const StorageOptions& storage = {});

}  // namespace tfjob::data
