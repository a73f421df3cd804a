#include "runtime/kernels/cuda/emulated/emulated_gpu.h"

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "runtime/kernels/cuda/emulator/emulator.h"
#include "runtime/kernels/cuda/emulator/memory.h"
#include "runtime/kernels/cuda/emulator/shadow.h"
#include "runtime/kernels/flush_denormals.h"

namespace tfjob::kernels::cuda {
namespace {

using device::cuda::FakeKernel;
using device::cuda::FakeLaunch;
using device::cuda::FakeMachine;

void NoteRead(const void* address, size_t bytes) {
  if (shadow::Enabled()) shadow::HostReads(reinterpret_cast<uintptr_t>(address), bytes);
}
void NoteWritten(const void* address, size_t bytes) {
  if (shadow::Enabled()) shadow::HostWrote(reinterpret_cast<uintptr_t>(address), bytes);
}

void RunEmulated(const Entry& entry, const void* parameter, Dim grid, Dim block, uint64_t seed) {
  const FlushDenormals flush;  // like nvcc's -ftz=true
  cuda::Run(entry, parameter, grid, block, seed);
}

// Aborts the process if there are reports about the operation.
void ExpectNoReport(const std::string& operation) {
  const std::vector<std::string> reports = TakeReports();
  if (reports.empty()) return;
  std::fprintf(stderr, "emulator: %s: %zu reports, the first: %s\n", operation.c_str(),
               reports.size(), reports[0].c_str());
  std::abort();
}

}  // namespace

Launcher EmulatorLauncher(uint64_t seed) {
  return [seed](const LaunchRequest& launch, Stream&) {
    if (launch.grid.x == 0 || launch.grid.y == 0 || launch.grid.z == 0) return;
    const Entry* const entry = FindEntry(launch.kernel);
    if (entry == nullptr || entry->parameter_bytes != launch.bytes) {
      return Report("launch", StrCat(launch.kernel, " with a parameter of ", launch.bytes,
                                     " bytes does not exist"));
    }
    RunEmulated(*entry, launch.parameter, {launch.grid.x, launch.grid.y, launch.grid.z},
                {launch.block.x, launch.block.y, launch.block.z}, seed);
  };
}

GpuAccess EmulatedGpu(uint64_t seed, const std::function<void(device::cuda::BlasApi&)>& change) {
  const auto submit = [](const device::Operation& operation, device::cuda::StreamHandle) {
    std::vector<void*> addresses;
    for (const device::Access& access : operation.accesses)
      addresses.push_back(const_cast<void*>(access.address));
    operation.run(addresses);
    return device::cuda::kSuccess;
  };
  static auto* const blas = new device::cuda::BlasApi;
  *blas = device::cuda::FakeBlas({.submit = submit,
                                  .captures = [](device::cuda::StreamHandle) { return false; },
                                  .reads = NoteRead,
                                  .wrote = NoteWritten});
  if (change) change(*blas);
  auto products = Products::Create(
      *blas, {.enter = [] {},
              .handle = [](Stream&) { return nullptr; },
              .fail =
                  [](const Status& error) {
                    Report("library",
                           StrCat(Message(error), ": ", device::cuda::FakeBlasRefusal()));
                  }});
  return {EmulatorLauncher(seed), *std::move(products)};
}

FakeMachine EmulatedMachine(uint64_t seed) {
  FakeMachine machine{.seed = seed};
  for (const Entry* entry : AllEntries()) {
    machine.kernels[entry->name] =
        FakeKernel{entry->parameter_bytes, [entry, seed](const FakeLaunch& launch) {
                     RunEmulated(*entry, launch.parameter.data(),
                                 {launch.grid[0], launch.grid[1], launch.grid[2]},
                                 {launch.block[0], launch.block[1], launch.block[2]}, seed);
                     ExpectNoReport(entry->name);
                   }};
  }
  // The memory is created on first use, because until then the memory of an earlier machine may
  // still exist.
  const auto memory = std::make_shared<std::unique_ptr<EmulatedMemory>>();
  machine.allocate = [memory](size_t bytes, const std::string& name) {
    if (*memory == nullptr) *memory = std::make_unique<EmulatedMemory>();
    return std::shared_ptr<std::byte>((*memory)->Allocate(bytes, name), EmulatedMemory::Free);
  };
  machine.reads = [](const void* address, size_t bytes) {
    NoteRead(address, bytes);
    ExpectNoReport("a copy");
  };
  machine.wrote = [](const void* address, size_t bytes) {
    NoteWritten(address, bytes);
    ExpectNoReport("a copy");
  };
  return machine;
}

device::cuda::FakeBlasOptions EmulatedBlas() {
  return {.reads =
              [](const void* address, size_t bytes) {
                NoteRead(address, bytes);
                ExpectNoReport("a product");
              },
          .wrote =
              [](const void* address, size_t bytes) {
                NoteWritten(address, bytes);
                ExpectNoReport("a product");
              }};
}

}  // namespace tfjob::kernels::cuda
