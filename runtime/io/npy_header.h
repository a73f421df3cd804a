// Reads the header of an array in NumPy's format.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "runtime/base/status.h"
#include "runtime/tensor/shape.h"

namespace tfjob::io {

inline constexpr std::string_view kNpyMagic = "\x93NUMPY";

// Describes how a file stores an array.
struct NpyLayout {
  char kind = 'f';       // NumPy's kind of type: f, i, u, b
  size_t item = 4;       // bytes per element
  bool swap = false;     // the bytes of an element are in big-endian order
  bool fortran = false;  // the first axis varies fastest
  Shape shape;
};

// Parses the Python literal "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }". Returns
// InvalidArgument or Unimplemented, with a message that starts with `what`.
StatusOr<NpyLayout> ParseNpyLayout(std::string_view text, std::string_view what);

}  // namespace tfjob::io
