// Runs the optimizers' kernels on the emulator. The code that launches them on a GPU does not exist
// yet.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/base/philox.h"
#include "runtime/kernels/cuda/compare.h"
#include "runtime/kernels/cuda/emulator/emulator.h"
#include "runtime/kernels/cuda/emulator/memory.h"
#include "runtime/kernels/cuda/parameters.h"

namespace tfjob::kernels::cuda {
namespace {

constexpr int kTensors = 5;
constexpr int64_t kCounts[kTensors] = {1003, 5, kUpdateChunk + 2, 16, 1};

// Variables of several sizes with their gradients and slots, on the host and on the emulator.
struct Variables {
  explicit Variables(uint64_t seed, bool first, bool second) {
    PhiloxStream random(seed);
    UpdateTensors& u = update;
    for (int i = 0; i < kTensors; ++i) {
      const auto values = [&](const char* name, bool positive) {
        std::vector<float> host(static_cast<size_t>(kCounts[i]));
        for (float& value : host)
          value = static_cast<float>(positive ? random.Uniform() : 2 * random.Uniform() - 1);
        auto* const device = memory.Allocate(host.size() * 4, StrCat(name, i));
        EmulatedMemory::Write(device, host.data(), host.size() * 4);
        return std::pair(host, reinterpret_cast<float*>(device));
      };
      std::tie(w[i], u.tensor[i].variable) = values("w", false);
      auto [gradient, device] = values("g", false);
      g[i] = gradient;
      u.tensor[i].gradient = device;
      if (first) std::tie(m[i], u.tensor[i].first) = values("m", false);
      if (second) std::tie(v[i], u.tensor[i].second) = values("v", true);
      u.tensor[i].count = kCounts[i];
      u.first_block[i + 1] =
          u.first_block[i] + static_cast<int>((kCounts[i] + kUpdateChunk - 1) / kUpdateChunk);
    }
    u.tensors = kTensors;
  }

  template <typename Parameter>
  void Launch(const char* kernel, const Parameter& parameter, uint64_t seed) {
    Stream stream;
    EmulatorLauncher(seed)({kernel,
                            {static_cast<unsigned>(update.first_block[kTensors])},
                            {kUpdateThreads},
                            &parameter,
                            sizeof parameter},
                           stream);
    ExpectNoReports(kernel);
  }

  // Compares a variable or a slot with the expected values.
  static void ExpectNear(const float* actual, double expected, const char* what) {
    EXPECT_NEAR(*actual, expected, 1e-5 * std::max(1.0, std::abs(expected))) << what;
  }

  EmulatedMemory memory;
  UpdateTensors update{};
  std::vector<float> w[kTensors], g[kTensors], m[kTensors], v[kTensors];
};

TEST(ApplyAdam, UpdatesAllVariablesInOneLaunch) {
  for (uint64_t seed = 0; seed < 4; ++seed) {
    Variables variables(seed, true, true);
    const int64_t step = 6;
    auto* const device_step = variables.memory.Allocate(sizeof step, "step");
    EmulatedMemory::Write(device_step, &step, sizeof step);
    const AdamParameter parameter{
        variables.update, reinterpret_cast<int64_t*>(device_step), 0.01F, 0.9F, 0.99F, 1e-7F};
    variables.Launch("ApplyAdam", parameter, seed);
    const double rate = 0.01 * std::sqrt(1 - std::pow(0.99, 7)) / (1 - std::pow(0.9, 7));
    for (int i = 0; i < kTensors; ++i) {
      const UpdateTensor& tensor = variables.update.tensor[i];
      for (size_t j = 0; j < variables.w[i].size(); ++j) {
        const double gradient = variables.g[i][j];
        const double m = variables.m[i][j] + (gradient - variables.m[i][j]) * 0.1;
        const double v = variables.v[i][j] + (gradient * gradient - variables.v[i][j]) * 0.01;
        Variables::ExpectNear(tensor.first + j, m, "m");
        Variables::ExpectNear(tensor.second + j, v, "v");
        Variables::ExpectNear(tensor.variable + j,
                              variables.w[i][j] - m * rate / (std::sqrt(v) + 1e-7), "w");
      }
    }
  }
}

TEST(ApplySgd, UpdatesWithAndWithoutMomentum) {
  for (const auto& [momentum, nesterov] : {std::pair(0.0F, 0), {0.9F, 0}, {0.9F, 1}}) {
    for (uint64_t seed = 0; seed < 4; ++seed) {
      Variables variables(seed, momentum > 0, false);
      variables.Launch("ApplySgd", SgdParameter{variables.update, 0.1F, momentum, nesterov}, seed);
      for (int i = 0; i < kTensors; ++i) {
        for (size_t j = 0; j < variables.w[i].size(); ++j) {
          const double change = 0.1 * variables.g[i][j];
          double expected = variables.w[i][j] - change;
          if (momentum > 0) {
            const double m = momentum * variables.m[i][j] - change;
            Variables::ExpectNear(variables.update.tensor[i].first + j, m, "m");
            expected = variables.w[i][j] + (nesterov != 0 ? momentum * m - change : m);
          }
          Variables::ExpectNear(variables.update.tensor[i].variable + j, expected, "w");
        }
      }
    }
  }
}

}  // namespace
}  // namespace tfjob::kernels::cuda
