#include "runtime/api/fit/epoch_record.h"

namespace tfjob::api {

void EpochRecord::Add(int64_t epoch, const std::vector<std::pair<std::string, double>>& values) {
  history_.epoch.push_back(epoch);
  std::vector<std::string>& names = names_.emplace_back();
  for (const auto& [name, value] : values) {
    history_.values[name].push_back(value);
    names.push_back(name);
  }
}

void EpochRecord::Remove(int64_t epoch) {
  for (; !history_.epoch.empty() && history_.epoch.back() >= epoch; history_.epoch.pop_back()) {
    for (const std::string& name : names_.back()) {
      const auto values = history_.values.find(name);
      values->second.pop_back();
      if (values->second.empty()) history_.values.erase(values);
    }
    names_.pop_back();
  }
}

}  // namespace tfjob::api
