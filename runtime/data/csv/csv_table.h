// Loads the columns of a CSV file by their names.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/data/dataset.h"
#include "runtime/data/records/example_row.h"
#include "runtime/data/records/record_source.h"

namespace tfjob::data {

// A feature, and the columns whose values are its elements, in this order. The feature is a number
// (kFloat32 or kInt64), or has `tokens` or a `vocabulary`; with `tokens`, there is one column, and
// otherwise one per element of the shape. `fill` replaces empty fields. Excludes `raw`, `image`,
// `variable` and `sequence`.
struct CsvFeature {
  ExampleFeature feature;
  std::vector<std::string> columns;
};

struct CsvTableOptions {
  std::string file;  // plain or gzipped; its first record contains the names of the columns
  char delimiter = ',';
  std::vector<CsvFeature> features;
  std::vector<RecordOptions::Value> fields;  // the arrays of the dataset
  // That the values may take; 0: three quarters of the memory that the process may use.
  size_t most_bytes = 0;
};

// Returns InvalidArgument, with the file and the line, if a column is missing or occurs twice, if a
// record has another number of fields than the first, if a field is not a number or not a term of
// the vocabulary, if it is empty and there is no `fill`, if there are no records, or if the values
// need more than `most_bytes`; they are allocated once, when the records have been counted.
StatusOr<Dataset> LoadCsvTable(const CsvTableOptions& options);

}  // namespace tfjob::data
