// Implements the functions of cuBLASLt in this process, for tests. A product is computed by plain
// loops, which read only what was handed to the library: the attributes of the descriptors, and the
// arguments of the call. They know nothing of the op that the product is for.
//
// It is stricter than the library, which checks little without a GPU: it refuses what the manual
// forbids or leaves undefined, such as a leading dimension that is too small, matrices of a result
// that overlap, an algorithm that was chosen for other descriptors or for better aligned addresses,
// a workspace that is too small or not aligned, and a bias that is missing. The first run of an
// algorithm may load a kernel, so it is refused while the stream captures a sequence. An algorithm
// that may add in any order is refused, too, because results must be reproducible.
//
// Like the real library, it exists once per process.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "runtime/device/cuda/blas_api.h"
#include "runtime/device/fake_runtime.h"

namespace tfjob::device::cuda {

struct FakeBlasOptions {
  // Submits the operation of a product. The default is SubmitToFakeDriver.
  std::function<Result(Operation, StreamHandle)> submit;
  // Returns whether a stream captures a sequence. The default is FakeDriverCaptures.
  std::function<bool(StreamHandle)> captures;
  // Called while a product runs, with the addresses of the content: before the given bytes are
  // read, and after they were written. May be empty.
  std::function<void(const void*, size_t)> reads, wrote;
};

// Returns the functions, which behave as the options say from now on. No handle from an earlier
// call may still be in use.
const BlasApi& FakeBlas(FakeBlasOptions options = {});

// Returns why the fake last refused a call since FakeBlas; "" if it has refused none.
std::string FakeBlasRefusal();

// Returns how many handles exist: of the library, and of descriptors.
int FakeBlasHandles();

}  // namespace tfjob::device::cuda
