// Measures the speed of kernels, and compares it with the speed of the device's memory.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/status.h"
#include "runtime/exec/device.h"
#include "runtime/kernels/kernel.h"
#include "runtime/selftest/finding.h"

namespace tfjob::selftest {

struct SpeedOptions {
  int64_t elements = int64_t{1} << 26;  // of each large operand
  int64_t side = 8192;                  // of the matrices of products
  int repetitions = 20;
  std::function<Duration()> now = [] { return RealClock().Monotonic(); };
};

// A request for a kernel whose speed should be limited only by the device's memory.
struct SpeedCase {
  kernels::KernelRequest request;
  // Returns the number of bytes that must be read or written: each input and output once.
  int64_t bytes() const;
};
std::vector<SpeedCase> SpeedCases(int64_t elements);

// Returns the finding for a kernel that moves `bytes_per_second`, on a device on which a copy moves
// `roof` bytes per second. A kernel is slow if it moves less than 60 % of `roof`.
Finding JudgeBandwidth(const SpeedCase& speed_case, double bytes_per_second, double roof);

// Measures a copy within the device, SpeedCases, and products of large square matrices of all
// types. Products are not judged, because the device's limit is not known.
std::vector<Finding> CheckSpeed(const exec::Device& device, const SpeedOptions& options = {});

}  // namespace tfjob::selftest
