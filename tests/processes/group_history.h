// Reads the logs of a group's processes, and checks what they show about the whole group: that no
// two generations have taken the same step, and that only the task that leads saves checkpoints.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "runtime/base/status.h"

namespace tfjob::processes {

class GroupHistory {
 public:
  // Adds the log of one process, from its start to its end.
  void Add(const std::string& log);
  // Returns an error if a process has saved a checkpoint without leading, or if most tasks of two
  // generations have logged the same step. (A single task may log a step and be lost before the
  // others have taken the step, which they then repeat without this task.)
  Status Check() const;
  // Returns the number of generations in which most tasks have logged a step.
  size_t generations() const;

 private:
  struct Generation {
    int64_t number = 0;
    std::string leader;
    auto operator<=>(const Generation&) const = default;
  };
  bool HasTaken(const Generation& generation, int logged) const {
    return 2 * logged > tasks_.at(generation);
  }

  std::map<Generation, int64_t> tasks_;                  // their number
  std::map<int64_t, std::map<Generation, int>> logged_;  // by step: how many tasks have logged it
  Status saved_;                                         // the first save without leading
};

}  // namespace tfjob::processes
