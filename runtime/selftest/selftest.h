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

// Runs a program, which inherits the output of this process, and returns its exit code. If the
// program is killed by a signal, returns an error. If it runs for longer than `seconds`, kills it
// and returns an error. Each family runs in a separate process, because a fault in a kernel makes
// the GPU unusable for the process.
StatusOr<int> RunProcess(const std::vector<std::string>& arguments, int seconds);

// Prints the table's header to `out`. Then calls run(family) for each family; `run` prints the
// family's findings and returns an exit code. Prints a row for each error that `run` returns, and a
// summary. Returns the worst exit code, or kNoDeviceCode as soon as `run` returns it.
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
