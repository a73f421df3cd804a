// Describes how one array of a dataset is converted to one tensor of a batch, and converts the
// array's values.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/tensor/tensor.h"

namespace tfjob::data {

struct Dataset;

struct Column {
  std::string name;   // the name of the tensor in a batch
  std::string array;  // the name of the array in the dataset
  DType dtype = DType::kFloat32;
  // The shape of one example in a batch. The examples in the array have the same number of
  // elements, but may have a different shape, such as [] instead of [1].
  Shape shape = {};
  float scale = 1;  // factor by which the values are multiplied; only for float32
  // If above 0, the values are class numbers in [0, classes). The tensor contains these numbers or,
  // if one_hot is set, one row per number: all zeros except a 1 at the position of the class. With
  // one_hot, the last dimension of the shape is `classes`, and an example of the array has one
  // element per row.
  int64_t classes = 0;
  bool one_hot = false;
  // If set, the first axis of the shape has the length of the longest bucket (Source::buckets), and
  // each batch is truncated to the length of its bucket. Cannot be combined with one_hot if the
  // shape has a single axis.
  bool by_length = false;
  // If not empty, the tensor contains the weights of the classes instead of the class numbers. The
  // weight of a class without an entry is 1. For each element of the shape, the array contains
  // either a class number or a row of scores. The largest score in a row determines the class.
  std::map<int64_t, double> class_weights = {};
  // A number that is valid although it is not a class, for losses that ignore it. Cannot be
  // combined with one_hot.
  std::optional<int64_t> ignored_class = {};
};

// Returns a column that converts an array to float32, with the shape of the array's examples.
Column FloatColumn(const Dataset& dataset, const std::string& array, float scale = 1);
// Returns one FloatColumn per array.
std::vector<Column> FloatColumns(const Dataset& dataset);
// Returns a column of class numbers: int64, one per example.
Column ClassColumn(const std::string& array, int64_t classes);
// Returns a column of one-hot rows: float32 [classes], one per example.
Column OneHotColumn(const std::string& array, int64_t classes);

// Converts all values of a column, but does not multiply them by `scale`. Leaves two more
// conversions to CopyRows (column_rows.h): bytes for a float32 column stay bytes, and one-hot rows
// stay class numbers (int64). If no value needs conversion, the tensor shares the array's memory.
//
// Checks every value. Returns InvalidArgument if a value is NaN, infinite or out of range, or if it
// is not a whole number but the column has an integer type. The message names the file, the row,
// the value and the expected values. Also returns InvalidArgument if there is no such array, or if
// its examples do not have the expected number of elements.
StatusOr<Tensor> ConvertColumn(const Dataset& dataset, const Column& column);

}  // namespace tfjob::data
