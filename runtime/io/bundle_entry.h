// Describes a tensor of a checkpoint (bundle_reader.h).
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/io/tensor_slice.h"
#include "runtime/tensor/shape.h"

namespace tfjob::io {

// Locates the bytes of a tensor, or of one of its slices, in a data file of the checkpoint.
struct BundleLocation {
  int shard = 0;
  int64_t offset = 0;
  int64_t size = 0;
  uint32_t masked_crc = 0;
};

struct BundleSlice {
  TensorSlice slice;
  BundleLocation location;
};

struct BundleEntry {
  int tensorflow_dtype =
      0;  // TensorFlow's DataType number; may be a type that Tensor does not support (7: string)
  Shape shape;
  int64_t size = 0;  // in bytes
  // The location of the values. A partitioned variable consists of several slices, each of which
  // has a location; every element of the shape is in exactly one of them.
  BundleLocation location;
  std::vector<BundleSlice> slices = {};
};

}  // namespace tfjob::io
