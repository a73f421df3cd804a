// Reads and writes arrays in NumPy's format
// (numpy.org/doc/stable/reference/generated/numpy.lib.format.html), versions 1 to 3.
//
// The tensor has the array's type if tensors support that type. Otherwise, the type is converted:
//   float16               float32
//   int8, int16, uint16   int32
//   uint32, uint64        int64
// Both byte orders and both axis orders (C and Fortran) are supported. The resulting tensor is in C
// order.
//
// Files are untrusted input: the shape is compared with the size of the file before memory is
// allocated. A compressed array may use up to 256 MiB of memory or a hundred times its compressed
// size, whichever is more.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "runtime/base/file_system.h"
#include "runtime/base/status.h"
#include "runtime/io/npy_header.h"
#include "runtime/tensor/tensor.h"

namespace tfjob::io {

// Returns DataLoss if the file is damaged, InvalidArgument if it is not a NumPy array or if a
// uint64 does not fit into int64, and Unimplemented for arrays of other types (objects, text,
// complex numbers, records). Messages name the file.
StatusOr<Tensor> ReadNpy(const std::string& path);

// Reads an array of `size` bytes, including its header, from any source. `stored` is the array's
// size in storage, which is less than `size` if the array is compressed. `read` must fill the whole
// span with the next bytes. `what` names the array in messages. Also returns InvalidArgument if a
// compressed array would exceed the memory limit above.
StatusOr<Tensor> ReadNpyFrom(std::string_view what, uint64_t size, uint64_t stored,
                             absl::FunctionRef<Status(std::span<std::byte>)> read);

// Describes the elements of an array in a file.
struct NpyItems {
  NpyLayout layout;
  DType dtype = DType::kFloat32;  // the type of the tensor
  uint64_t begin = 0;             // the offset of the first element
};

// Reads the header of an array; the parameters are those of ReadNpyFrom. Checks that the array's
// shape fits its size, and the memory limit above. Returns the same errors as ReadNpyFrom.
StatusOr<NpyItems> ReadNpyItems(std::string_view what, uint64_t size, uint64_t stored,
                                absl::FunctionRef<Status(std::span<std::byte>)> read);
// Returns whether elements must be converted to the tensor's type: their bytes differ from those of
// the tensor, or not every value is valid.
bool NeedsConversion(const NpyLayout& layout);
// Reads as many elements as the tensor has, in the order of the file, and converts them to the
// tensor's type, which must be NpyItems::dtype. Returns DataLoss or InvalidArgument for an invalid
// value, like ReadNpyFrom.
Status ReadNpyElements(std::string_view what, const NpyLayout& layout,
                       absl::FunctionRef<Status(std::span<std::byte>)> read, Tensor& tensor);

// Returns the bytes that precede the elements of an array in C order.
// Returns Unimplemented for bfloat16, which NumPy lacks.
StatusOr<std::string> NpyHeader(DType dtype, const Shape& shape);

// Writes an array to a file, which it replaces atomically.
Status WriteNpy(const std::string& path, const Tensor& tensor,
                FileSystem& files = RealFileSystem());

}  // namespace tfjob::io
