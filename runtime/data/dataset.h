// Holds examples in memory as their files store them. Images, for example, stay bytes until they
// become part of a batch. Loading checks the whole file. It returns InvalidArgument, DataLoss or an
// error from reading the file. The message names the file and, if possible, the row.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/tensor/tensor.h"

namespace tfjob::data {

// Immutable once loaded. Shared by the pipelines that read it.
struct Dataset {
  std::string labels_name;  // the labels' file, for errors
  std::string row_name =
      "row";              // how errors name an example: "row" in an IDX file, "line" in a CSV file
  int64_t first_row = 0;  // number of the first example; rows count from 0, lines from 1
  Tensor features;        // uint8 or float32 [n, …]
  Tensor labels;          // uint8 or float64 [n]

  int64_t size() const { return labels.num_elements(); }
  // Returns the shape of one example.
  Shape feature_shape() const;
};

// Loads MNIST's format (yann.lecun.com/exdb/mnist). A file begins with four bytes: 0, 0, the type
// and the rank. The dimensions follow as big-endian 32-bit integers, and then the values row by
// row. Only unsigned bytes (type 08) are supported. Files may be plain or gzipped. Labels must have
// rank 1.
struct IdxOptions {
  std::string images;
  std::string labels;
};
StatusOr<Dataset> LoadIdx(const IdxOptions& options);

// Loads rows of decimal numbers. The file may be plain or gzipped. Every row must have as many
// columns as the first one. All columns but the label's are features. An example's features have
// the shape [columns - 1] and are in the order of the file.
struct CsvOptions {
  std::string file;
  bool header = true;
  std::string
      label_column;  // a name, or an index from 0 (from the end if negative); "": the last column
  char delimiter = ',';
};
StatusOr<Dataset> LoadCsv(const CsvOptions& options);

// Generates y = x·weights + bias + noise·N(0, 1). The same seed yields the same data. If there is
// one feature, its values are evenly spaced from low to high, inclusive. If there are several,
// their values are drawn uniformly from that range.
struct LinearOptions {
  std::vector<double> weights = {2};
  double bias = 10, noise = 0.33, low = -1, high = 1;
  int64_t examples = 100;
  uint64_t seed = 0;
};
StatusOr<Dataset> MakeLinear(const LinearOptions& options);

}  // namespace tfjob::data
