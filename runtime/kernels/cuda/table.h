// Provides the table of kernels for NVIDIA GPUs. The host's side of a kernel checks the request
// when the kernel is prepared; when the kernel runs, it chooses the grids and submits the launches.
//
// The kernels compute in float32, and round results of half types once; docs/gpu.md lists the ops.
// A kernel that refuses the values of
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

// A launch of a kernel from the .cu files. Its parameter is one of the structs in parameters.h.
struct LaunchRequest {
  const char* kernel = nullptr;
  Grid grid, block;
  const void* parameter = nullptr;  // copied by the launcher
  size_t bytes = 0;
};

// A function that submits a launch to a stream. On a GPU, this is CudaRuntime::Submit. In tests,
// the function may instead run the kernel on the emulator, immediately.
using Launcher = std::function<void(const LaunchRequest&, Stream&)>;

// The objects through which kernels use a GPU.
struct GpuAccess {
  Launcher launcher;
  std::shared_ptr<Products> products;
  Arithmetic arithmetic = Arithmetic::kFloat32;  // of matrix products
  // The largest matrix of windows, in bytes, that a convolution keeps in its workspace, unless a
  // single window needs more. A matrix of this size fits into the L2 cache, which has 40 MB on an
  // A100 and 50 MB on an H100.
  size_t window_bytes = size_t{32} << 20;
};

// Returns all kernels, including ApplyOptimizer.
KernelTable MakeTable(const GpuAccess& gpu);

// Returns the names of all kernels (LaunchRequest::kernel). A device must load them before it
// captures a stream.
std::span<const char* const> KernelNames();

}  // namespace tfjob::kernels::cuda
