// Trains with the C++ API, for the benchmark case fit. This is a separate library, because a source
// file includes either the headers of the API or those of the runtime.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tfjob::bench {

struct FitOptions {
  std::vector<int64_t> hidden = {512, 512};
  int64_t batch = 128;
  // The CPU time is measured from the end of the first epoch to the end of the last one.
  int64_t epochs = 3;
  int pairs = 10;
  std::string folder;  // contains the files of Fashion-MNIST
};

// Returns the CPU time of this process, in seconds.
double ProcessCpuSeconds();

// Trains with CompiledModel::Fit, and returns the CPU time of the measured epochs. The program ends
// if training fails.
double CpuSecondsOfFit(const FitOptions& options);

}  // namespace tfjob::bench
