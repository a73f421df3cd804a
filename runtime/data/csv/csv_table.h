// Opens the columns of a CSV file by name.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/data/csv/csv_columns.h"
#include "runtime/data/records/record_source.h"
#include "runtime/data/source.h"
#include "runtime/data/storage.h"

namespace tfjob::data {

struct CsvTableOptions {
  std::string file;  // plain or gzipped; its first record contains the column names
  char delimiter = ',';
  std::vector<CsvFeature> features;
  std::vector<RecordOptions::Value> fields;  // the fields of the source
  StorageOptions storage = {};
  int threads = 1;  // as in RecordOptions; for a table that is not in memory
};

// Opens the file. Keeps its values in memory if the file is small enough (storage.h). Otherwise,
// reads each record when a batch needs it (records/record_source.h).
//
// Returns InvalidArgument, with the file and the line, if a column is missing or occurs twice, or
// if there are no records. Also returns InvalidArgument if a record does not have as many fields as
// the header, if a field is not a number or not a term of the vocabulary, or if a field is empty
// and there is no `fill`; if the values are not in memory, RowReader::Read returns these errors.
// Propagates errors from OpenRecords.
StatusOr<std::shared_ptr<const Source>> OpenCsvTable(const CsvTableOptions& options);

}  // namespace tfjob::data
