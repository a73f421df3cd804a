#include "runtime/exec/largest_tensors.h"

#include <algorithm>
#include <map>
#include <vector>

namespace tfjob::exec {

std::string LargestTensors(const Plan& plan) {
  struct Entry {
    size_t bytes = 0;
    std::string text;
  };
  std::map<int, Entry> by_buffer;  // the first value in each buffer
  for (const PlannedStep& step : plan.steps) {
    for (const Value& output : step.outputs) {
      if (output.home != Home::kArena || by_buffer.contains(output.index)) continue;
      const size_t bytes = plan.buffers[static_cast<size_t>(output.index)].bytes;
      const kernels::Operand& operand = output.operand;
      by_buffer[output.index] = {bytes, StrCat(step.name, " ", Name(operand.dtype),
                                               operand.shape.ToString(), " (", bytes, " bytes)")};
    }
  }
  std::vector<Entry> entries;
  for (auto& [index, entry] : by_buffer) entries.push_back(std::move(entry));
  std::ranges::stable_sort(entries, std::ranges::greater(), &Entry::bytes);
  constexpr size_t kMost = 5;
  std::string text;
  for (size_t i = 0; i < std::min(kMost, entries.size()); ++i)
    text += (i == 0 ? "" : ", ") + entries[i].text;
  return text;
}

}  // namespace tfjob::exec
