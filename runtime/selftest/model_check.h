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

// Specifies whether each step is started only after the previous one has finished, or earlier.
enum class Steps { kOneByOne, kOverlapped };

// Trains with random features and labels, which depend only on the step.
StatusOr<Trained> Train(const model::BuiltGraph& built, const exec::Device& device, int count,
                        Steps steps = Steps::kOneByOne);

// The largest allowed differences between the results of the devices, relative to the size of the
// results.
struct Tolerance {
  double losses = 1e-4, changes = 1e-3;
  // The number of first steps in which the hits must be equal. In later steps, the models differ
  // slightly, and two classes may be almost equally probable, so the hits are not compared.
  size_t equal_hits = 3;
};

// Returns Internal if the results differ by more than the tolerance. Compares the changes of
// variables rather than their values: a variable with small gradients changes so little that a
// comparison of its values would hide wrong changes. Also returns Internal if a variable has hardly
// changed. Rounding alone changes its elements by about 1e-7, so comparing such a change would be
// meaningless.
Status CompareTrained(const Trained& actual, const Trained& expected, const Tolerance& tolerance);

// Trains an example for this number of steps on the CPU, and twice on the device: step by step, and
// with overlapping steps. The two results of the device must be bit-identical.
Finding CheckModel(const ExampleModel& example, const exec::Device& device, int steps);

}  // namespace tfjob::selftest
