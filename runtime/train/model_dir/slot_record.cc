#include "runtime/train/model_dir/slot_record.h"

#include <vector>

#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace tfjob::train {

std::string RecordSlots(const optimizer::Optimizer& optimizer) {
  std::string record(Name(optimizer.kind));
  for (const optimizer::Slot& slot : Slots(optimizer))
    record += StrCat(" ", slot.name, "=", slot.suffix);
  return record;
}

std::optional<std::string> RecordedSuffix(std::string_view record,
                                          const optimizer::Optimizer& optimizer,
                                          const optimizer::Slot& slot) {
  if (record.empty()) return slot.suffix;
  const std::vector<std::string> words =
      absl::StrSplit(absl::string_view(record.data(), record.size()), ' ');
  if (words.front() != Name(optimizer.kind)) return std::nullopt;
  for (const std::string& word : words) {
    if (word.starts_with(slot.name + "=")) return word.substr(slot.name.size() + 1);
  }
  return std::nullopt;
}

}  // namespace tfjob::train
