// Identifies a task of a job.
#pragma once

#include <cstdint>
#include <string>

namespace tfjob::state {

// A task that computes gradients.
struct TaskId {
  std::string type;  // "worker"
  int32_t index = 0;
  bool operator==(const TaskId&) const = default;
};

}  // namespace tfjob::state
