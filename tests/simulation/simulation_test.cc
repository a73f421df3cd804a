#include "tests/simulation/simulation.h"

#include <gtest/gtest.h>

#include "runtime/base/env.h"
#include "runtime/base/log.h"
#include "tests/sanitized.h"

namespace tfjob::simulation {
namespace {

constexpr int kGroups = 16;
// A sanitizer makes a simulation five times slower.
constexpr int kSeeds = kSanitized ? 500 : 5000;

// TFJOB_SEED=n runs only the simulation with seed n, and logs:
// bazel test … --test_env=TFJOB_SEED=17
// TFJOB_SEEDS=n runs the seeds below n instead of those below kSeeds.
class SimulationTest : public ::testing::TestWithParam<int> {};

TEST_P(SimulationTest, EverySeedEndsAsItShould) {
  ConfigureLogging(LogLevel::kOff, LogFormat::kText);
  const std::string one = GetEnv("TFJOB_SEED").value_or("");
  if (!one.empty()) {
    ConfigureLogging(LogLevel::kDebug, LogFormat::kText);
    if (GetParam() == 0) {
      EXPECT_EQ(Simulation(std::stoull(one)).Run(), "");
    }
    return;
  }
  const int seeds = std::stoi(GetEnv("TFJOB_SEEDS").value_or(StrCat(kSeeds)));
  for (int seed = GetParam(); seed < seeds; seed += kGroups) {
    EXPECT_EQ(Simulation(static_cast<uint64_t>(seed)).Run(), "") << "TFJOB_SEED=" << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, SimulationTest, ::testing::Range(0, kGroups));

}  // namespace
}  // namespace tfjob::simulation
