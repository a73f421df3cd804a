#include <gtest/gtest.h>

#include <iostream>

#include "runtime/base/env.h"
#include "runtime/base/log.h"
#include "tests/sanitized.h"
#include "tests/simulation/training/simulation.h"

namespace tfjob::simulation {
namespace {

constexpr int kGroups = 16;
// A sanitizer makes a simulation many times slower.
constexpr int kSeeds = kSanitized ? 200 : 5000;

// TFJOB_SEED=n runs only the simulation with seed n, and prints its events:
// bazel test … --test_env=TFJOB_SEED=17
// TFJOB_SEEDS=n runs the seeds below n instead of those below kSeeds.
class TrainingSimulationTest : public ::testing::TestWithParam<int> {};

TEST_P(TrainingSimulationTest, EverySeedEndsAsItShould) {
  ConfigureLogging(LogLevel::kOff, LogFormat::kText);
  const std::string one = GetEnv("TFJOB_SEED").value_or("");
  if (!one.empty()) {
    if (GetParam() != 0) return;
    ConfigureLogging(LogLevel::kDebug, LogFormat::kText);
    TrainingSimulation simulation(std::stoull(one));
    EXPECT_EQ(simulation.Run(), "");
    std::cerr << simulation.Story();
    return;
  }
  const int seeds = std::stoi(GetEnv("TFJOB_SEEDS").value_or(StrCat(kSeeds)));
  for (int seed = GetParam(); seed < seeds; seed += kGroups) {
    EXPECT_EQ(TrainingSimulation(static_cast<uint64_t>(seed)).Run(), "") << "TFJOB_SEED=" << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, TrainingSimulationTest, ::testing::Range(0, kGroups));

TEST(TrainingSimulation, ASeedReplays) {
  ConfigureLogging(LogLevel::kOff, LogFormat::kText);
  for (uint64_t seed : {1, 2, 3}) {
    std::string stories[2];
    uint64_t fingerprints[2];
    for (int run : {0, 1}) {
      TrainingSimulation simulation(seed);
      simulation.Run();
      stories[run] = simulation.Story();
      fingerprints[run] = simulation.fingerprint();
    }
    EXPECT_EQ(stories[0], stories[1]);
    EXPECT_EQ(fingerprints[0], fingerprints[1]);
  }
}

}  // namespace
}  // namespace tfjob::simulation
