// A device constraint as TensorFlow writes it: "/job:ps/replica:0/task:1/device:CPU:0", every part
// optional.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/status.h"

namespace tfjob::graph {

struct DeviceSpec {
  std::optional<std::string> job;
  std::optional<int> replica;
  std::optional<int> task;
  std::optional<std::string> type;  // "CPU", "GPU"
  std::optional<int> index;

  // Also the old forms "/cpu:0", "/gpu:1", and "*" for an absent part. InvalidArgument says which
  // part is wrong.
  static StatusOr<DeviceSpec> Parse(std::string_view text);
  std::string ToString() const;
  // This one's parts where `inner` has none.
  DeviceSpec MergedWith(const DeviceSpec& inner) const;
  bool operator==(const DeviceSpec&) const = default;
};

}  // namespace tfjob::graph
