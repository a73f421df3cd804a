// Trains models on a device and on the CPU, and compares the results.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/exec/device.h"
#include "runtime/model/build.h"
#include "runtime/selftest/example_models.h"
#include "runtime/selftest/finding.h"

namespace tfjob::selftest {

struct Trained {
  std::vector<float> losses, hits;                    // by step
  std::map<std::string, std::vector<float>> changes;  // of the variables, in all steps
  size_t arena_bytes = 0;                             // of the program

  bool operator==(const Trained&) const = default;
};

// Says whether a step is started before the one before it has ended.
enum class Steps { kOneByOne, kOverlapped };

// Trains with random features and labels, which depend only on the step.
StatusOr<Trained> Train(const model::BuiltGraph& built, const exec::Device& device, int count,
                        Steps steps = Steps::kOneByOne);

// How far the results of the devices may be from each other, relative to their size.
struct Tolerance {
  double losses = 1e-4, changes = 1e-3;
};

// Returns Internal if the results differ by more, or if a variable has hardly changed, so that a
// comparison of its changes would say little. Compares changes rather than values, because a
// variable with small gradients changes little. Rounding of the variables alone changes elements by
// about 1e-7.
Status CompareTrained(const Trained& actual, const Trained& expected, const Tolerance& tolerance);

// Trains an example for this number of steps on the CPU, and twice on the device: step by step, and
// with overlapping steps. The latter two must have equal bits.
Finding CheckModel(const ExampleModel& example, const exec::Device& device, int steps);

}  // namespace tfjob::selftest
