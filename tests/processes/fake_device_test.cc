// Runs jobs whose tasks compute on the fake device, which runs operations in an order drawn from a
// seed. Each checkpoint must be identical, byte for byte, to that of the same job on the CPU.
#include <gtest/gtest.h>

#include <vector>

#include "tests/processes/synchronous_job.h"

namespace tfjob::processes {
namespace {

constexpr char kOptimizer[] = "optimizer: {name: adam, learning_rate: 0.005}";
const std::vector<cluster::Task> kSix = {{"chief", 0},  {"ps", 0},     {"ps", 1},
                                         {"worker", 0}, {"worker", 1}, {"worker", 2}};

TEST(FakeDevice, AJobOfSixTasksTrainsAsOnTheCpu) {
  const std::string folder = StrCat(testing::TempDir(), "/fake_device");
  SynchronousJob cpu(folder + "_cpu", kSix, kOptimizer);
  SynchronousJob fake(folder + "_fake", kSix, kOptimizer, {{"TFJOB_DEVICE", "fake:3"}});
  SynchronousJob single(folder + "_single", kSix, kOptimizer, {{"TFJOB_DEVICE", "fake:4"}});
  SynchronousJob single_cpu(folder + "_single_cpu", kSix, kOptimizer);
  for (const cluster::Task& task : kSix) {
    cpu.Start(task);
    fake.Start(task);
  }
  single.StartSingle(4);
  single_cpu.StartSingle(4);
  for (SynchronousJob* job : {&cpu, &fake, &single, &single_cpu}) job->AwaitEnd();
  EXPECT_NE(fake.Output("worker1").find("/device:FAKE:0"), std::string::npos);
  EXPECT_EQ(cpu.Output("worker1").find("/device:FAKE:0"), std::string::npos);
  ASSERT_EQ(cpu.Files().size(), 2U) << "an index and its data";
  EXPECT_TRUE(fake.Files() == cpu.Files()) << "the checkpoints differ";
  ASSERT_EQ(single_cpu.Files().size(), 2U);
  EXPECT_TRUE(single.Files() == single_cpu.Files()) << "the checkpoints of one task differ";
}

}  // namespace
}  // namespace tfjob::processes
