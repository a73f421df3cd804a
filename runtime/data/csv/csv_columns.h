// Converts the columns of a CSV file to the values of features.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/data/records/example_row.h"
#include "runtime/data/records/string_reader.h"

namespace tfjob::data {

// Describes a feature and, in the order of its elements, the columns that contain them. A feature
// with `tokens` has one column; any other feature has one column per element of its shape. Elements
// are numbers (kFloat32 or kInt64) or, with a `vocabulary`, terms. `fill` replaces empty fields.
// The feature must not have `raw`, `image`, `variable` or `sequence`.
struct CsvFeature {
  ExampleFeature feature;
  std::vector<std::string> columns;
};

// Reads one feature of one record after another. Only one thread may use it. The CsvFeature must
// outlive it.
class CsvColumns {
 public:
  using Fields = std::vector<std::string_view>;

  explicit CsvColumns(const CsvFeature& of);

  // Looks up the feature's columns in the header. Returns InvalidArgument if a column is missing or
  // occurs twice.
  Status Find(const Fields& header);
  // Stores the feature's value in a record that has as many fields as the header. Returns
  // InvalidArgument, with the column, if a field is not a valid element.
  Status Store(const Fields& record, std::span<std::byte> value);

  const ExampleFeature& feature() const { return feature_; }
  size_t bytes() const;  // of the value

 private:
  Status StoreField(std::string_view field, std::span<std::byte> to);

  const ExampleFeature& feature_;
  const std::vector<std::string>& names_;
  std::unique_ptr<StringReader> strings_;  // null unless the feature consists of ids
  std::vector<size_t> columns_;
};

}  // namespace tfjob::data
