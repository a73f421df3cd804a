#include "runtime/variables/memory_use.h"

#include <algorithm>
#include <functional>
#include <utility>

namespace tfjob::variables {

std::string LargestTensors(std::vector<MemoryUse> tensors) {
  std::ranges::stable_sort(tensors, std::ranges::greater(), &MemoryUse::bytes);
  constexpr size_t kMost = 5;
  std::string text;
  for (size_t i = 0; i < std::min(kMost, tensors.size()); ++i) {
    const MemoryUse& tensor = tensors[i];
    text += StrCat(i == 0 ? "" : ", ", tensor.name, " ", Name(tensor.dtype),
                   tensor.shape.ToString(), " (", tensor.bytes, " bytes)");
  }
  return text;
}

Status CheckMemory(size_t total, std::vector<MemoryUse> tensors, int64_t available) {
  if (total <= static_cast<size_t>(available)) return OkStatus();
  return ResourceExhausted("the model needs ", total, " bytes of memory, but this process may use ",
                           available,
                           "; use a smaller model or batch, or more memory. The largest tensors: ",
                           LargestTensors(std::move(tensors)));
}

}  // namespace tfjob::variables
