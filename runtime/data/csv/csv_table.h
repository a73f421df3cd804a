// Loads the columns of a CSV file by name.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/data/dataset.h"
#include "runtime/data/records/example_row.h"
#include "runtime/data/records/record_source.h"

namespace tfjob::data {

// Describes a feature and, in the order of its elements, the columns that contain them. A feature
// with `tokens` has one column; any other feature has one column per element of its shape. Elements
// are numbers (kFloat32 or kInt64) or, with a `vocabulary`, terms. `fill` replaces empty fields.
// The feature must not have `raw`, `image`, `variable` or `sequence`.
struct CsvFeature {
  ExampleFeature feature;
  std::vector<std::string> columns;
};

struct CsvTableOptions {
  std::string file;  // plain or gzipped; its first record contains the column names
  char delimiter = ',';
  std::vector<CsvFeature> features;
  std::vector<RecordOptions::Value> fields;  // the arrays of the dataset
  // The maximum memory for the values. 0: three quarters of the memory that the process may use.
  size_t most_bytes = 0;
};

// Loads the file. Returns InvalidArgument, with the file and the line, if a column is missing or
// occurs twice, if a record does not have as many fields as the header, if a field is not a number
// or not a term of the vocabulary, or if a field is empty and there is no `fill`. Also returns
// InvalidArgument if there are no records, or if the values need more than `most_bytes`; this is
// checked before memory is allocated.
StatusOr<Dataset> LoadCsvTable(const CsvTableOptions& options);

}  // namespace tfjob::data
