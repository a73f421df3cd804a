// Provides the kernels for NVIDIA's GPUs as a table. The host's side of a kernel checks the request
// when it is prepared, chooses the grid, and submits launches when it runs.
//
// The kernels compute in float32; docs/gpu.md lists the ops. A kernel that refuses the values of
// its inputs reports this through Stream::refusal, and kernels that update variables then do
// nothing.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>

#include "runtime/kernels/cuda/product.h"
#include "runtime/kernels/kernel.h"

namespace tfjob::kernels::cuda {

struct Grid {
  unsigned x = 1, y = 1, z = 1;
};

// A launch of one of the kernels in the .cu files, with one of the structs of parameters.h.
struct LaunchRequest {
  const char* kernel = nullptr;
  Grid grid, block;
  const void* parameter = nullptr;  // copied by the launcher
  size_t bytes = 0;
};

// Submits the launch to the stream. On a GPU, this is CudaRuntime::Submit; in tests, it may also
// run the emulator immediately.
using Launcher = std::function<void(const LaunchRequest&, Stream&)>;

// The access to a GPU that kernels need.
struct GpuAccess {
  Launcher launcher;
  std::shared_ptr<Products> products;
  Arithmetic arithmetic = Arithmetic::kFloat32;  // of matrix products
  // The most that a convolution keeps in its workspace of what its windows see. Chosen so that it
  // stays in the L2 cache: 40 MB on an A100, 50 MB on an H100.
  size_t window_bytes = size_t{32} << 20;
};

// Returns all kernels, including ApplyOptimizer.
KernelTable MakeTable(const GpuAccess& gpu);

// Returns the names of all kernels (LaunchRequest::kernel). A device loads them before it captures.
std::span<const char* const> KernelNames();

}  // namespace tfjob::kernels::cuda
