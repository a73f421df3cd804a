// Runs kernels with one mistake each, and checks that the emulator reports the mistake with every
// seed.
#include "runtime/kernels/cuda/emulator/emulator.h"

#include <gtest/gtest.h>

#include <vector>

#include "runtime/base/status.h"
#include "runtime/kernels/cuda/emulator/memory.h"
#include "runtime/kernels/cuda/emulator/shadow.h"
#include "runtime/kernels/cuda/emulator/test_kernels.h"

namespace tfjob::kernels::cuda {
namespace {

constexpr uint64_t kSeeds = 8;

// Memory for x, which is 2 everywhere, and for y, which is not initialised.
struct Operands {
  Operands() {
    const std::vector<float> values(kTestThreads, 2.0F);
    EmulatedMemory::Write(x, values.data(), values.size() * sizeof(float));
    TakeReports();
    shadow::TakeTraffic();
  }

  std::vector<std::string> Run(const char* kernel, uint64_t seed, unsigned blocks = 1,
                               unsigned threads = kTestThreads) {
    const TestParameter parameter{reinterpret_cast<float*>(x), reinterpret_cast<float*>(y)};
    const Entry* const entry = FindEntry(kernel);
    EXPECT_NE(entry, nullptr) << kernel;
    cuda::Run(*entry, &parameter, {blocks}, {threads}, seed);
    return TakeReports();
  }

  EmulatedMemory memory;
  std::byte* const x = memory.Allocate(kTestThreads * sizeof(float), "x");
  std::byte* const y = memory.Allocate(kTestThreads * sizeof(float), "y");
};

// Checks that a report begins with `report`, with every seed.
void ExpectReport(const char* kernel, const std::string& report, unsigned blocks = 1) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    Operands operands;
    bool found = false;
    std::string all;
    for (const std::string& text : operands.Run(kernel, seed, blocks)) {
      found |= text.starts_with(report);
      all += text + "\n";
    }
    EXPECT_TRUE(found) << kernel << ", seed " << seed << ": " << all;
  }
}

TEST(Emulator, RunsACorrectKernelWithoutReports) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    Operands operands;
    EXPECT_EQ(operands.Run("TestCorrect", seed), std::vector<std::string>());
    for (int i = 0; i < kTestThreads; ++i) EXPECT_EQ(reinterpret_cast<float*>(operands.y)[i], 64);
  }
}

TEST(Emulator, MultipliesMatricesByWarp) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    Operands operands;
    EXPECT_EQ(operands.Run("TestProduct", seed), std::vector<std::string>());
    for (int thread = 0; thread < kTestThreads; ++thread) {
      const int warp = thread / 32, row = thread % 32 / 4 + warp * 8, col = thread % 4 * 2;
      float sums[2] = {static_cast<float>(1 + warp * 2), static_cast<float>(2 + warp * 2)};
      for (int i = 0; i < 2; ++i)
        for (int inner = 0; inner < 16; ++inner)
          sums[i] += TestLeft(row, inner) * TestRight(inner, col + i);
      EXPECT_EQ(reinterpret_cast<float*>(operands.y)[thread], sums[0] + 2048 * sums[1]) << thread;
    }
  }
}

TEST(Emulator, ReportsProductsThatNotAllLanesReach) {
  ExpectReport("TestProductOfHalfAWarp", "barrier: divergent");
}

TEST(Emulator, ReportsBarriersThatNotAllThreadsReach) {
  ExpectReport("TestDivergentBarrier",
               "barrier: divergent in block 0: thread 0 waits at a barrier");
  ExpectReport("TestShuffleInACondition", "barrier: divergent in block 0");
}

TEST(Emulator, ReportsLanesThatTheMaskOfAShuffleLacks) {
  ExpectReport("TestHalfOfTheLanes", "shuffle: lane ");
}

TEST(Emulator, ReportsLaunchesBeyondTheLimits) {
  Operands operands;
  const std::vector<std::string> expected = {
      "launch: TestNothing: the launch exceeds the kernel's bounds or a GPU's limits"};
  EXPECT_EQ(operands.Run("TestNothing", 0, 1, kTestThreads + 1), expected);
  EXPECT_EQ(operands.Run("TestNothing", 0, 1, 0), expected);
  EXPECT_EQ(operands.Run("TestNothing", 0, 0), expected);
  EXPECT_TRUE(operands.Run("TestNothing", 0, 3).empty());
}

TEST(Emulator, ReportsUnalignedAccessesOf16Bytes) {
  ExpectReport("TestUnaligned", "alignment: ");
}

// The tests below are skipped if the build has no shadow, so check that the shadow is not missing
// by mistake.
TEST(ShadowOfTheBuild, IsOnUnlessTheBuildHasASanitizer) {
#ifdef TFJOB_SHADOW
  EXPECT_TRUE(shadow::Enabled());
#else
  EXPECT_FALSE(shadow::Enabled());
#endif
}

class Shadow : public testing::Test {
 protected:
  void SetUp() override {
    if (!shadow::Enabled()) GTEST_SKIP() << "this build has a sanitizer in place of the shadow";
  }
};

TEST_F(Shadow, ReportsAccessesOutsideOfAllocations) {
  ExpectReport("TestPastTheEnd", "bounds: read of 4 bytes ");
  ExpectReport("TestOutside", "bounds: write of 4 bytes outside of every allocation");
}

TEST_F(Shadow, ReportsReadsOfWhatNothingHasWritten) {
  ExpectReport("TestUninitialised", "uninitialised: read of y+");
}

// In some orders, a thread reads a word before it is first written; in other orders, the thread
// reads an older or newer value. Every order must lead to a report.
TEST_F(Shadow, ReportsAMissingBarrier) {
  ExpectReport("TestWithoutBarrier", "race: read of shared memory+");
}

TEST_F(Shadow, ReportsRacesInDeviceMemory) {
  ExpectReport("TestRaceOfBlocks", "race: write of y+", /*blocks=*/2);
  ExpectReport("TestReadBeforeWrite", "race: ");
}

TEST_F(Shadow, ThreadsMayAccessDifferentBytesOfAWord) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    Operands operands;
    EXPECT_EQ(operands.Run("TestBytes", seed, /*blocks=*/2), std::vector<std::string>());
  }
}

TEST_F(Shadow, ReportsRacesForBytes) {
  ExpectReport("TestSharedByte", "race: write of x+");
  ExpectReport("TestByteOfAWord", "race: ");
  ExpectReport("TestUninitialisedByte", "uninitialised: read of y+0");
}

TEST_F(Shadow, ChecksCopiesAndLibraries) {
  Operands operands;
  const auto x = reinterpret_cast<uintptr_t>(operands.x),
             y = reinterpret_cast<uintptr_t>(operands.y);
  constexpr size_t kBytes = kTestThreads * sizeof(float);
  shadow::HostReads(x, kBytes);
  EXPECT_EQ(TakeReports(), std::vector<std::string>());
  shadow::HostReads(y, 8);
  shadow::HostWrote(x, kBytes + 1);
  EmulatedMemory::Free(operands.x);
  shadow::HostReads(x, 4);
  EXPECT_EQ(TakeReports(),
            (std::vector<std::string>{
                "uninitialised: a copy or a library reads y+0",
                "bounds: 257 bytes written by a copy or a library outside of every allocation",
                "bounds: 4 bytes read by a copy or a library outside of every allocation"}));
}

TEST_F(Shadow, KnowsWhichWordsWereWritten) {
  Operands operands;
  const auto y = reinterpret_cast<uintptr_t>(operands.y);
  EXPECT_EQ(shadow::FirstUninitialised(reinterpret_cast<uintptr_t>(operands.x), 256), -1);
  operands.Run("TestStrided", 0);
  EXPECT_EQ(shadow::FirstUninitialised(y, 4), -1);
  EXPECT_EQ(shadow::FirstUninitialised(y, 256), 1);
}

// Returns the units of traffic (Traffic) for the kernel's accesses, and the smallest number of
// units that could move the same bytes. Counts accesses to shared memory or, if `shared` is false,
// to device memory.
std::pair<uint64_t, uint64_t> TrafficOf(const char* kernel, bool shared) {
  Operands operands;
  operands.Run(kernel, 0);
  std::pair<uint64_t, uint64_t> total;
  for (const shadow::Traffic& line : shadow::TakeTraffic()) {
    if (line.shared != shared) continue;
    total.first += line.units;
    total.second += line.ideal;
  }
  return total;
}

TEST_F(Shadow, CountsSectorsAndPassesOverBanks) {
  // Eight lanes write 32 bytes together, but each writes to a different sector.
  EXPECT_EQ(TrafficOf("TestStrided", false), std::pair(uint64_t{8}, uint64_t{1}));
  // 32 lanes write to one bank, and then read from that bank.
  EXPECT_EQ(TrafficOf("TestBankConflict", true), std::pair(uint64_t{64}, uint64_t{2}));
  // Two warps read and write 128 bytes each.
  EXPECT_EQ(TrafficOf("TestCorrect", false), std::pair(uint64_t{16}, uint64_t{16}));
}

}  // namespace
}  // namespace tfjob::kernels::cuda
