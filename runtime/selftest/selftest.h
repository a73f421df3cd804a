// Tests a device of this machine: compares the results of every kernel and of the example models
// with those of the CPU, and measures speed. docs/gpu.md describes the table that the self-test
// prints.
#pragma once

#include <cstdint>
#include <functional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/exec/device.h"
#include "runtime/selftest/finding.h"
#include "runtime/selftest/speed_check.h"

namespace tfjob::selftest {

struct Effort {
  uint64_t seeds = 12;  // of the shapes of each family of kernels
  int steps = 20;       // of each model
  SpeedOptions speed;
};

// Returns the names of all families, in the order in which they run: those of kernels
// (CaseFamilies), the example models, and "speed".
std::vector<std::string> Families();

// Runs a family on a device. Calls report(finding) for each finding. Returns NotFound if there is
// no such family.
Status RunFamily(std::string_view family, const exec::Device& device, const Effort& effort,
                 const std::function<void(const Finding&)>& report);

// Prints the table's header to `out`. Then calls run(family) for each family; `run` prints the
// family's findings and returns an exit code. Prints a row for each error or unknown code that
// `run` returns, and a summary. Returns the worst exit code. Returns kNoDeviceCode if `run` returns
// it for the first family; for a later one, it counts as wrong, because the GPU has been lost. If
// `run` returns Unavailable (RunProcess), does not run the remaining families.
int RunAll(const std::function<StatusOr<int>(const std::string& family)>& run, std::ostream& out);

// Runs the self-test with this name, prints a table to `out`, and returns the exit code. The names
// are:
//
//   "cuda"         all families, each in a process of its own
//   "cuda/FAMILY"  one family, in this process
//
// Returns InvalidArgument for other names.
StatusOr<int> RunSelfTest(std::string_view name, std::ostream& out);

}  // namespace tfjob::selftest
