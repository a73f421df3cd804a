// Implements the functions of cuBLASLt in this process, for tests. Plain loops compute each
// product, using only the data that the library receives: the attributes of the descriptors and the
// arguments of the call. The computation does not depend on the op that needs the product.
//
// The fake is stricter than the library, which checks little without a GPU. It refuses calls that
// the manual forbids or leaves undefined, such as those with
//   - a combination of types that the manual does not list;
//   - a leading dimension that is too small;
//   - a result whose matrices overlap;
//   - an algorithm that was chosen for other descriptors, or for more strictly aligned addresses;
//   - a workspace that is too small or not aligned;
//   - a bias that is missing.
// It also refuses the first run of an algorithm while the stream is capturing a sequence, because
// that run may load a kernel. Finally, it refuses algorithms that may add in any order, because
// results must be reproducible.
//
// Like the real library, the fake exists only once per process.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "runtime/device/cuda/blas_api.h"
#include "runtime/device/fake_runtime.h"

namespace tfjob::device::cuda {

struct FakeBlasOptions {
  // Submits the operation that computes a product. The default is SubmitToFakeDriver.
  std::function<Result(Operation, StreamHandle)> submit;
  // Returns whether a stream is capturing a sequence. The default is FakeDriverCaptures.
  std::function<bool(StreamHandle)> captures;
  // Called while a product runs, with an address and a number of bytes: before it reads these
  // bytes, and after it has written them. May be empty.
  std::function<void(const void*, size_t)> reads, wrote;
};

// Returns the functions of the library, to which `options` apply from now on. No handle from an
// earlier call may still be in use.
const BlasApi& FakeBlas(FakeBlasOptions options = {});

// Returns the reason for the last refusal since FakeBlas was called, or "" if no call was refused.
std::string FakeBlasRefusal();

// Returns the number of existing handles, including those of descriptors.
int FakeBlasHandles();

}  // namespace tfjob::device::cuda
