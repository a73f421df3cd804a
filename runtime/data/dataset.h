// Defines datasets, which keep examples in memory in the types that their files use. For example,
// the pixels of IDX images stay bytes until they are copied to a batch. The functions that load
// files check them completely. They return InvalidArgument, DataLoss or an error from reading the
// file, with a message that names the file and, if possible, the row.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/tensor/tensor.h"

namespace tfjob::data {

// An array with one value per example, of any type and shape.
struct Array {
  std::string name;
  std::string file;  // the file of the values, for error messages
  Tensor values;     // [n, …]

  // Returns the shape of one example.
  Shape example_shape() const;
};

// The names of the arrays in datasets that have one array of features and one of labels.
inline constexpr char kFeaturesArray[] = "features";
inline constexpr char kLabelsArray[] = "labels";

// The values of all examples. Immutable once loaded. Shared by the pipelines that read it.
struct Dataset {
  std::vector<Array> arrays;  // at least one; all have the same number of rows
  // The word for an example in error messages: "row" (IDX files) or "line" (CSV files).
  std::string row_name = "row";
  int64_t first_row = 0;  // number of the first example; rows are counted from 0, lines from 1
  // If set, replaces the two fields above: returns the place of an example in its file, for error
  // messages.
  std::function<std::string(int64_t index)> place = nullptr;

  int64_t size() const { return arrays[0].values.shape().dim(0); }
  // Returns null if there is no such array.
  const Array* Find(std::string_view name) const;
  // Returns the place of example `index` of an array, for error messages: "labels.gz: row 7".
  std::string Place(const Array& array, int64_t index) const;
};

// Loads two files in MNIST's format (yann.lecun.com/exdb/mnist). A file starts with four bytes: 0,
// 0, the type and the rank. The dimensions follow as big-endian 32-bit integers, and then the
// values, row by row. Only unsigned bytes (type 08) are supported, so both arrays are uint8. The
// files may be plain or gzipped. The labels must have rank 1.
struct IdxOptions {
  std::string images;
  std::string labels;
};
StatusOr<Dataset> LoadIdx(const IdxOptions& options);
// Loads one IDX file.
StatusOr<Tensor> ReadIdx(const std::string& path);

// Loads rows of decimal numbers. The file may be plain or gzipped. All rows must have the same
// number of columns. All columns except the label column are features. The features of an example
// have the shape [columns - 1], and are in the order of the columns. Labels are float64.
struct CsvOptions {
  std::string file;
  bool header = true;
  // The name or the index of the label column. Indices count from 0, and negative ones from the
  // end. "": the last column.
  std::string label_column;
  char delimiter = ',';
  DType features = DType::kFloat32;  // or kFloat64, which represents integers up to 2^53 exactly
};
StatusOr<Dataset> LoadCsv(const CsvOptions& options);

// Loads NumPy arrays (runtime/io/npy.h), from one archive or from separate files. The first axis of
// each array is the example axis. All arrays must have the same number of examples.
struct NpzOptions {
  struct Source {
    std::string name;   // the array's name in the dataset
    std::string array;  // its name in the archive, or the path of a file that ends in ".npy"
    // If set, the dataset lacks the array if there is no such array or file.
    bool optional = false;
  };
  std::string file;  // the archive; may be empty if no array is in it
  std::vector<Source> arrays;
  // If not empty, the arrays are taken from this map, by name, and no file is read. The dataset
  // shares their memory.
  std::map<std::string, Tensor> in_memory = {};
};
StatusOr<Dataset> LoadNpz(const NpzOptions& options);

// Draws arrays of random numbers: integers in [low, high], or floating-point numbers distributed
// uniformly between `low` and `high` (rounding to float32 may produce `high`). The same seed yields
// the same data. Each array depends only on the seed, its name and its own fields.
struct SyntheticOptions {
  struct Source {
    std::string name;
    DType dtype = DType::kFloat32;
    Shape shape;  // the shape of one example
    double low = 0, high = 1;
  };
  std::vector<Source> arrays;
  int64_t examples = 100;
  uint64_t seed = 0;
};
StatusOr<Dataset> MakeSynthetic(const SyntheticOptions& options);

// Generates y = x·weights + bias + noise·N(0, 1). The same seed yields the same data. If there is
// one feature, its values are evenly spaced from low to high, inclusive. If there are several,
// their values are drawn uniformly from that range. Features are float32, labels float64.
struct LinearOptions {
  std::vector<double> weights = {2};
  double bias = 10, noise = 0.33, low = -1, high = 1;
  int64_t examples = 100;
  uint64_t seed = 0;
};
StatusOr<Dataset> MakeLinear(const LinearOptions& options);

}  // namespace tfjob::data
