// Examples in memory, as their files hold them: images stay bytes until a batch is made of them. Loading checks a file
// whole; every error is InvalidArgument, DataLoss or the file's own and names the file, and where it can the row.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/tensor/tensor.h"

namespace tfjob::data {

// Immutable once loaded; shared by the pipelines that read it.
struct Dataset {
  std::string labels_name;  // the file of the labels, for errors
  std::string row_name =
      "row";  // what errors call an example, and the number of the first one: rows of an IDX file
  int64_t first_row = 0;  // count from 0, lines of a CSV file from 1
  Tensor features;        // uint8 or float32 [n, …]
  Tensor labels;          // uint8 or float64 [n]

  int64_t size() const { return labels.num_elements(); }
  // Of one example.
  Shape feature_shape() const;
};

// MNIST's format (yann.lecun.com/exdb/mnist): big-endian magic 00 00 type rank, the dimensions as 32-bit integers, the
// values row by row. Unsigned bytes (type 08), plain or gz. Labels have rank 1.
struct IdxOptions {
  std::string images;
  std::string labels;
};
StatusOr<Dataset> LoadIdx(const IdxOptions& options);

// Rows of decimal numbers, plain or gz; every row has as many columns as the first. Features are all columns but the
// label's, in their order: shape [columns - 1].
struct CsvOptions {
  std::string file;
  bool header = true;
  std::string
      label_column;  // a name, or an index from 0 (from the end when negative); "": the last
  char delimiter = ',';
};
StatusOr<Dataset> LoadCsv(const CsvOptions& options);

// y = x·weights + bias + noise·N(0, 1), a function of the seed. One feature runs evenly from low to high (both
// included), several are drawn uniformly.
struct LinearOptions {
  std::vector<double> weights = {2};
  double bias = 10, noise = 0.33, low = -1, high = 1;
  int64_t examples = 100;
  uint64_t seed = 0;
};
StatusOr<Dataset> MakeLinear(const LinearOptions& options);

}  // namespace tfjob::data
