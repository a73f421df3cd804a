#include "runtime/exec/constants.h"

#include <memory>

namespace tfjob::exec {

StatusOr<std::vector<device::Memory>> PlaceConstants(const std::vector<Tensor>& constants,
                                                     device::DeviceRuntime& runtime) {
  std::vector<device::Memory> placed;
  for (const Tensor& constant : constants) {
    if (runtime.immediate()) {
      const auto owner = std::make_shared<Tensor>(constant);
      placed.emplace_back(owner, owner->bytes().data());
      continue;
    }
    ASSIGN_OR_RETURN(placed.emplace_back(),
                     runtime.Allocate(device::MemoryKind::kDevice, constant.num_bytes(),
                                      Buffer::Contents::kUndefined, "a constant"));
    RETURN_IF_ERROR(
        runtime.Write(placed.back().get(), constant.bytes().data(), constant.num_bytes()));
  }
  return placed;
}

}  // namespace tfjob::exec
