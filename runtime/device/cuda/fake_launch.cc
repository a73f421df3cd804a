#include "runtime/device/cuda/fake_launch.h"

#include <cstring>
#include <span>
#include <utility>
#include <vector>

namespace tfjob::device::cuda {

bool FitsGpu(const FakeLaunch& launch) {
  const auto& [grid_x, grid_y, grid_z] = launch.grid;
  const auto& [block_x, block_y, block_z] = launch.block;
  const uint64_t threads = uint64_t{block_x} * block_y;
  return grid_x != 0 && grid_y != 0 && grid_z != 0 && grid_x <= 0x7fffffff && grid_y <= 65535 &&
         grid_z <= 65535 && threads != 0 && threads <= 1024 && block_z != 0 && block_z <= 64 &&
         threads * block_z <= 1024;
}

Operation OperationOfLaunch(const std::string& name, const FakeKernel& kernel,
                            const FakeLaunch& launch, const std::byte* parameter,
                            const std::function<bool(uint64_t)>& is_address) {
  std::vector<std::byte> copy(parameter, parameter + kernel.parameter_bytes);
  std::vector<size_t> offsets;
  Operation operation{.name = name, .accesses = {}, .run = {}};
  for (size_t offset = 0; offset + sizeof(uint64_t) <= copy.size(); offset += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, copy.data() + offset, sizeof word);
    if (!is_address(word)) continue;
    offsets.push_back(offset);
    operation.accesses.push_back({reinterpret_cast<const void*>(word), 1, /*writes=*/true});
  }
  operation.run = [&kernel, copy = std::move(copy), offsets = std::move(offsets),
                   launch = FakeLaunch(launch)](std::span<void* const> storage) mutable {
    for (size_t i = 0; i < offsets.size(); ++i)
      std::memcpy(copy.data() + offsets[i], &storage[i], sizeof(void*));
    launch.parameter = copy;
    kernel.run(launch);
  };
  return operation;
}

}  // namespace tfjob::device::cuda
