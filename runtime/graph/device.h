// Represents a device constraint in TensorFlow's form: "/job:ps/replica:0/task:1/device:CPU:0".
// Every part is optional.
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

  // Parses the form shown at the top of this file. Also accepts the old forms "/cpu:0" and
  // "/gpu:1", and "*" in place of a value that is not constrained. Returns InvalidArgument for
  // anything else; the message names the invalid part.
  static StatusOr<DeviceSpec> Parse(std::string_view text);
  std::string ToString() const;
  // Returns a copy of `inner` whose missing parts are taken from this constraint.
  DeviceSpec MergedWith(const DeviceSpec& inner) const;
  bool operator==(const DeviceSpec&) const = default;
};

}  // namespace tfjob::graph
