// Defines kernels that consist of a single launch.
#pragma once

#include <memory>
#include <utility>

#include "runtime/kernels/cuda/families.h"

namespace tfjob::kernels::cuda {

template <typename Parameter, typename Fill>
class LaunchKernel final : public Kernel {
 public:
  LaunchKernel(Launcher launcher, const char* name, Grid grid, Grid block,
               const Parameter& parameter, Fill fill)
      : launcher_(std::move(launcher)),
        name_(name),
        grid_(grid),
        block_(block),
        parameter_(parameter),
        fill_(fill) {}

  void Run(const void* const* inputs, void* const* outputs, void*, Stream& stream) override {
    Parameter parameter = parameter_;
    fill_(parameter, inputs, outputs);
    Submit(launcher_, name_, grid_, block_, parameter, stream);
  }

 private:
  const Launcher launcher_;
  const char* const name_;
  const Grid grid_, block_;
  const Parameter parameter_;
  const Fill fill_;
};

// Returns a kernel that launches `name`. `fill` sets the pointers in the parameter.
template <typename Parameter, typename Fill>
Prepared MakeLaunch(const Launcher& launcher, const char* name, Grid grid, Grid block,
                    const Parameter& parameter, Fill fill) {
  return std::make_unique<LaunchKernel<Parameter, Fill>>(launcher, name, grid, block, parameter,
                                                         fill);
}

}  // namespace tfjob::kernels::cuda
