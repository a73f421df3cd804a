#include "runtime/exec/device.h"

#include <charconv>

#include "runtime/device/cpu_runtime.h"
#include "runtime/exec/cuda_device.h"
#include "runtime/exec/fake_device.h"
#include "runtime/optimizer/apply_kernel.h"

namespace tfjob::exec {
namespace {

constexpr int64_t kCacheLine = 64;
// Rows whose distance is a multiple of this number of bytes fall into only a few of the 64 sets of
// a first-level cache. Addresses 4096 bytes (64 cache lines) apart share a set.
constexpr int64_t kConflictingBytes = 1024;

// Returns the kernels for the host, which exist until the process exits.
std::shared_ptr<const kernels::KernelTable> HostKernels() {
  static const auto* const kTable = new auto(std::make_shared<const kernels::KernelTable>(
      kernels::CpuKernels().With(optimizer::CpuKernels())));
  return *kTable;
}

// Returns the CPU. Until the CUDA kernels have run on a real GPU, a GPU is used only if it is
// requested by name.
Device AutomaticDevice(ThreadPool* pool, const GpuOptions& options) {
  const StatusOr<std::string> gpu = FindCudaDevice(options);
  Device cpu = CpuDevice(pool);
  cpu.reason = gpu.ok() ? StrCat(*gpu,
                                 " is used only with \"device: cuda\", because the CUDA kernels "
                                 "have not run on a real GPU yet (docs/gpu.md)")
                        : std::string(Message(gpu.status()));
  return cpu;
}

}  // namespace

Device CpuDevice(ThreadPool* pool) {
  return Device{.name = "/device:CPU:0",
                .kernels = HostKernels(),
                .pool = pool,
                .runtime = device::CpuRuntime(),
                .row_stride = RowStride,
                .reason = ""};
}

StatusOr<Device> DeviceByName(std::string_view name, ThreadPool* pool, const GpuOptions& gpu) {
  constexpr std::string_view kFake = "fake:";
  if (name == "cpu") return CpuDevice(pool);
  if (name == "cuda") return CudaDevice(pool, gpu);
  if (name == "auto") return AutomaticDevice(pool, gpu);
  if (name == "fake") return FakeDevice(/*seed=*/1, pool);
  uint64_t seed = 0;
  if (name.starts_with(kFake)) {
    const std::string_view digits = name.substr(kFake.size());
    const char* const end = digits.data() + digits.size();
    const auto [parsed, error] = std::from_chars(digits.data(), end, seed);
    if (error == std::errc() && parsed == end) return FakeDevice(seed, pool);
  }
  return InvalidArgument("device ", name, ": expected auto, cpu, cuda, fake or fake:SEED, where ",
                         "SEED is a number such as 7");
}

int64_t RowStride(DType dtype, const Shape& shape) {
  const int64_t cols = shape.rank() == 0 ? 1 : shape.dim(-1);
  const auto size = static_cast<int64_t>(SizeOf(dtype));
  if (shape.rank() != 2 || shape.dim(0) < 2 || cols == 0) return cols;
  return cols * size % kConflictingBytes == 0 ? cols + kCacheLine / size : cols;
}

}  // namespace tfjob::exec
