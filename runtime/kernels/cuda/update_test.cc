// Tests the optimizers' kernels on the emulator with many variables in one launch. The tests of
// ApplyOptimizer do not cover this, because the op updates one variable per launch.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/base/philox.h"
#include "runtime/kernels/cuda/emulated/compare.h"
#include "runtime/kernels/cuda/emulated/emulated_gpu.h"
#include "runtime/kernels/cuda/emulator/emulator.h"
#include "runtime/kernels/cuda/emulator/memory.h"
#include "runtime/kernels/cuda/emulator/shadow.h"
#include "runtime/kernels/cuda/parameters.h"

namespace tfjob::kernels::cuda {
namespace {

// The number of variables in the tests: the largest number for one launch. Some of the variables
// are empty.
constexpr int kTensors = kUpdateTensors;
constexpr int64_t kCounts[] = {1003, 5, kUpdateChunk + 2, 0, 16, 1};

struct Setup {
  bool first = false, second = false;  // which slots exist
  bool first_step = false;             // all values except the gradients are 0
  bool aligned = false;                // every address is a multiple of 16
};

// Variables of several sizes with their gradients and slots, on the host and on the emulator.
struct Variables {
  explicit Variables(uint64_t seed, const Setup& setup) {
    PhiloxStream random(seed);
    UpdateTensors& u = update;
    for (int i = 0; i < kTensors; ++i) {
      const int64_t count = kCounts[static_cast<size_t>(i) % std::size(kCounts)];
      const auto values = [&](const char* name, bool positive) {
        std::vector<float> host(static_cast<size_t>(count));
        for (float& value : host)
          value = static_cast<float>(positive ? random.Uniform() : 2 * random.Uniform() - 1);
        if (setup.first_step && *name != 'g') std::ranges::fill(host, 0.0F);
        const size_t offset = !setup.aligned && random.Below(6) == 0 ? 4 * random.Below(4) : 0;
        auto* const device = memory.Allocate(host.size() * 4, StrCat(name, i), offset);
        EmulatedMemory::Write(device, host.data(), host.size() * 4);
        return std::pair(host, reinterpret_cast<float*>(device));
      };
      std::tie(w[i], u.tensor[i].variable) = values("w", false);
      auto [gradient, device] = values("g", false);
      g[i] = gradient;
      u.tensor[i].gradient = device;
      if (setup.first) std::tie(m[i], u.tensor[i].first) = values("m", false);
      if (setup.second) std::tie(v[i], u.tensor[i].second) = values("v", true);
      u.tensor[i].count = count;
      u.first_block[i + 1] =
          u.first_block[i] + static_cast<int>((count + kUpdateChunk - 1) / kUpdateChunk);
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

AdamParameter MakeAdam(Variables& variables, double beta_1, double beta_2, int64_t step) {
  auto* const device_step = variables.memory.Allocate(sizeof step, "step");
  EmulatedMemory::Write(device_step, &step, sizeof step);
  return {.update = variables.update,
          .adam = {.step = reinterpret_cast<int64_t*>(device_step),
                   .rate = {nullptr, 0.01F},
                   .epsilon = 1e-7F,
                   .take_1 = static_cast<float>(1 - beta_1),
                   .take_2 = static_cast<float>(1 - beta_2),
                   .log_beta_1 = static_cast<float>(std::log(beta_1)),
                   .log_beta_2 = static_cast<float>(std::log(beta_2))}};
}

SgdParameter MakeSgd(const Variables& variables, float momentum, int nesterov) {
  return {variables.update, {.rate = {nullptr, 0.1F}, .momentum = momentum, .nesterov = nesterov}};
}

TEST(ApplyAdam, UpdatesAllVariablesInOneLaunch) {
  for (uint64_t seed = 0; seed < 4; ++seed) {
    Variables variables(seed, {.first = true, .second = true});
    variables.Launch("ApplyAdam", MakeAdam(variables, 0.9, 0.99, 6), seed);
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

// The results of the first steps depend most on 1 - beta, which has few correct digits in single
// precision.
TEST(ApplyAdam, IsExactAtTheFirstStep) {
  for (const double beta_2 : {0.999, 0.9999}) {
    Variables variables(/*seed=*/1, {.first = true, .second = true, .first_step = true});
    variables.Launch("ApplyAdam", MakeAdam(variables, 0.9, beta_2, 0), /*seed=*/1);
    const double rate = 0.01 * std::sqrt(1 - beta_2) / (1 - 0.9);
    double error = 0;
    const auto expect = [&error](float actual, double expected) {
      error = std::max(error, std::abs(actual - expected) / std::max(std::abs(expected), 1e-30));
    };
    for (int i = 0; i < kTensors; ++i) {
      const UpdateTensor& tensor = variables.update.tensor[i];
      for (size_t j = 0; j < variables.g[i].size(); ++j) {
        const double gradient = variables.g[i][j];
        const double m = 0.1 * gradient, v = (1 - beta_2) * gradient * gradient;
        expect(tensor.first[j], m);
        expect(tensor.second[j], v);
        expect(tensor.variable[j], -m * rate / (std::sqrt(v) + 1e-7));
      }
    }
    EXPECT_LT(error, 1e-6) << beta_2;
  }
}

TEST(ApplySgd, UpdatesWithAndWithoutMomentum) {
  for (const auto& [momentum, nesterov] : {std::pair(0.0F, 0), {0.9F, 0}, {0.9F, 1}}) {
    for (uint64_t seed = 0; seed < 4; ++seed) {
      Variables variables(seed, {.first = momentum > 0});
      variables.Launch("ApplySgd", MakeSgd(variables, momentum, nesterov), seed);
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

TEST(Update, AccessesAreCoalesced) {
  if (!shadow::Enabled()) GTEST_SKIP() << "this build has a sanitizer in place of the shadow";
  const auto expect = [](const char* kernel) {
    for (const shadow::Traffic& line : shadow::TakeTraffic())
      EXPECT_EQ(line.units, line.ideal) << kernel << " at " << line.where;
  };
  Variables adam(/*seed=*/1, {.first = true, .second = true, .aligned = true});
  const AdamParameter parameter = MakeAdam(adam, 0.9, 0.999, 0);
  shadow::TakeTraffic();
  adam.Launch("ApplyAdam", parameter, /*seed=*/1);
  expect("ApplyAdam");
  adam.Launch("ApplySgd", MakeSgd(adam, 0.9F, 1), /*seed=*/1);
  expect("ApplySgd with momentum");
  for (UpdateTensor& tensor : adam.update.tensor) tensor.first = nullptr;
  adam.Launch("ApplySgd", MakeSgd(adam, 0, 0), /*seed=*/1);
  expect("ApplySgd");
}

}  // namespace
}  // namespace tfjob::kernels::cuda
