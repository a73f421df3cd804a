#include "runtime/exec/group_updates.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "runtime/tensor/attributes.h"

namespace tfjob::exec {
namespace {

// The inputs of ApplyOptimizer.
constexpr size_t kStep = 0, kGradient = 1;

bool SamePlace(const Value& a, const Value& b) {
  return a.home == b.home && a.index == b.index;
}

bool Contains(const std::vector<Value>& values, const Value& value) {
  return std::ranges::any_of(values, [&](const Value& other) { return SamePlace(value, other); });
}

size_t GradientBytes(const PlannedStep& update) {
  return update.inputs[kGradient].operand.bytes();
}

bool IsSmallUpdate(const PlannedStep& step) {
  return step.request.op == "ApplyOptimizer" && GradientBytes(step) <= kMostGroupedGradient;
}

// Returns the settings of an update, without the name of its variable.
Attributes SettingsOf(const PlannedStep& update) {
  Attributes settings = update.request.attributes;
  settings.Set("variable", std::string());
  return settings;
}

// Updates that will be one step. `positions` contains their positions in the original plan.
struct Group {
  std::vector<PlannedStep> updates;
  std::vector<int> positions;
  size_t gradient_bytes = 0;
};

class Grouper {
 public:
  explicit Grouper(Plan& plan) : plan_(plan), moved_to_(plan.steps.size()) {}

  void Run() {
    std::vector<PlannedStep> steps = std::move(plan_.steps);
    plan_.steps.clear();
    for (size_t i = 0; i < steps.size(); ++i) {
      EmitConflicting(steps[i]);
      if (IsSmallUpdate(steps[i])) {
        Add(std::move(steps[i]), static_cast<int>(i));
      } else {
        moved_to_[i] = Emit(std::move(steps[i]));
      }
    }
    while (!groups_.empty()) EmitGroup(0);
    Renumber();
  }

 private:
  int Emit(PlannedStep step) {
    plan_.steps.push_back(std::move(step));
    return static_cast<int>(plan_.steps.size()) - 1;
  }

  // Emits the groups that must run before `step`.
  void EmitConflicting(const PlannedStep& step) {
    for (size_t i = groups_.size(); i-- > 0;) {
      const bool conflicts =
          std::ranges::any_of(groups_[i].updates, [&step](const PlannedStep& update) {
            return Contains(step.outputs, update.inputs[kGradient]) ||
                   std::ranges::any_of(update.outputs, [&step](const Value& written) {
                     return Contains(step.inputs, written) || Contains(step.outputs, written);
                   });
          });
      if (conflicts) EmitGroup(i);
    }
  }

  void Add(PlannedStep update, int position) {
    const auto same = [&update](const Group& group) {
      const PlannedStep& first = group.updates.front();
      return SamePlace(first.inputs[kStep], update.inputs[kStep]) &&
             SettingsOf(first) == SettingsOf(update);
    };
    const size_t bytes = GradientBytes(update);
    auto group = std::ranges::find_if(groups_, same);
    if (group != groups_.end() && group->gradient_bytes + bytes > kMostGroupedGradients) {
      EmitGroup(static_cast<size_t>(group - groups_.begin()));
      group = groups_.end();
    }
    if (group == groups_.end()) group = groups_.insert(groups_.end(), Group());
    group->gradient_bytes += bytes;
    group->updates.push_back(std::move(update));
    group->positions.push_back(position);
  }

  void EmitGroup(size_t index) {
    const Group group = std::move(groups_[index]);
    groups_.erase(groups_.begin() + static_cast<std::ptrdiff_t>(index));
    const int at = Emit(group.updates.size() == 1 ? group.updates[0] : Merge(group));
    for (const int position : group.positions) moved_to_[static_cast<size_t>(position)] = at;
    for (const PlannedStep& update : group.updates) {
      for (const Value& input : update.inputs)
        if (input.home == Home::kArena) used_late_.emplace_back(input.index, at);
    }
  }

  static PlannedStep Merge(const Group& group) {
    const PlannedStep& first = group.updates.front();
    PlannedStep merged{first.name, {"ApplyOptimizers", SettingsOf(first), {}, {}}, {}, {}};
    for (const PlannedStep& update : group.updates)
      merged.outputs.insert(merged.outputs.end(), update.outputs.begin(), update.outputs.end());
    merged.inputs = merged.outputs;
    merged.inputs.push_back(first.inputs[kStep]);
    for (const PlannedStep& update : group.updates)
      merged.inputs.push_back(update.inputs[kGradient]);
    for (const Value& value : merged.inputs) merged.request.inputs.push_back(value.operand);
    for (const Value& value : merged.outputs) merged.request.outputs.push_back(value.operand);
    return merged;
  }

  // Changes the numbers of steps in the plan to those of the new steps.
  void Renumber() {
    for (Lifetime& buffer : plan_.buffers) {
      buffer.first = moved_to_[static_cast<size_t>(buffer.first)];
      if (buffer.last != std::numeric_limits<int>::max())
        buffer.last = moved_to_[static_cast<size_t>(buffer.last)];
    }
    for (const auto& [index, step] : used_late_) {
      Lifetime& buffer = plan_.buffers[static_cast<size_t>(index)];
      buffer.last = std::max(buffer.last, step);
    }
    for (PlannedFetch& fetch : plan_.fetches)
      if (fetch.ready > 0) fetch.ready = moved_to_[static_cast<size_t>(fetch.ready) - 1] + 1;
  }

  Plan& plan_;
  std::vector<int> moved_to_;                   // the new position of each step
  std::vector<Group> groups_;                   // not yet emitted
  std::vector<std::pair<int, int>> used_late_;  // buffers, and moved steps that use them
};

}  // namespace

void GroupUpdates(Plan& plan) {
  Grouper(plan).Run();
}

}  // namespace tfjob::exec
