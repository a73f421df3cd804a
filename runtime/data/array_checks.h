// Checks the arrays of a dataset by their shapes, before or after the values are read.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/base/status.h"
#include "runtime/data/dataset.h"
#include "runtime/tensor/shape.h"

namespace tfjob::data {

struct IdxHeader {
  Shape shape;
  uint64_t begin = 0;  // the offset of the first value
};
// Reads the header of an IDX file, plain or gzipped. Returns the same errors as ReadIdx.
StatusOr<IdxHeader> ReadIdxHeader(const std::string& path);
// Returns InvalidArgument unless these are the shapes of images and of as many labels.
Status CheckIdxShapes(const IdxOptions& options, const Shape& images, const Shape& labels);

// Returns InvalidArgument if an array has no axis of examples, or no values. `from` names the
// array.
Status CheckArrayShape(const Shape& shape, const std::string& from);
// Returns InvalidArgument unless two arrays, in these files, have the same number of examples.
Status CheckSameExamples(const std::string& first, int64_t first_examples, const std::string& other,
                         int64_t other_examples);

}  // namespace tfjob::data
