// Runs a synchronous job twice, as processes that start in a random order within three seconds.
// Both runs must write the same checkpoint, byte for byte, and the same weights as a single task
// whose batches contain those of all tasks. Without ps tasks, one of the runs exchanges gradients
// over TCP, and the other through shared memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <thread>

#include "tests/processes/synchronous_job.h"

namespace tfjob::processes {
namespace {

using cluster::Task;

constexpr int kTrainingTasks = 3;
const std::vector<Task> kServers = {
    {"chief", 0}, {"ps", 0}, {"ps", 1}, {"worker", 0}, {"worker", 1}};
const std::vector<Task> kAllReduce = {{"chief", 0}, {"worker", 0}, {"worker", 1}};

constexpr char kAdam[] = "optimizer: {name: adam, learning_rate: 0.005}";
constexpr char kClipped[] = "optimizer: {name: sgd, learning_rate: 0.05, global_clipnorm: 0.5}";

// Starts the tasks of all runs, each at a random moment within three seconds.
void StartAtRandom(std::vector<SynchronousJob*> runs, const std::vector<Task>& tasks,
                   uint64_t seed) {
  struct Begin {
    Duration at;
    SynchronousJob* run;
    Task task;
  };
  std::mt19937_64 random(seed);
  std::vector<Begin> begins;
  for (SynchronousJob* run : runs) {
    for (const Task& task : tasks) {
      begins.push_back({std::chrono::milliseconds(random() % 3000), run, task});
    }
  }
  std::ranges::sort(begins, {}, &Begin::at);
  const auto start = std::chrono::steady_clock::now();
  for (const Begin& begin : begins) {
    std::this_thread::sleep_until(start + begin.at);
    begin.run->Start(begin.task);
  }
}

double RelativeDifference(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0, norm = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference += std::pow(a[i] - b[i], 2);
    norm += std::pow(b[i], 2);
  }
  return std::sqrt(difference / norm);
}

struct Case {
  const char* name;
  const char* optimizer;
  const std::vector<Task>* tasks;
};

class ReproducibleTest : public testing::TestWithParam<Case> {};

TEST_P(ReproducibleTest, TwoRunsAreEqualAndLikeOneTask) {
  const std::string folder = StrCat(testing::TempDir(), "/reproducible_", GetParam().name);
  const std::string optimizer = GetParam().optimizer;
  const std::vector<Task>& tasks = *GetParam().tasks;
  SynchronousJob first(folder + "_1", tasks, optimizer), second(folder + "_2", tasks, optimizer);
  SynchronousJob single(folder + "_single", tasks, optimizer);
  second.set_transport("tcp");
  StartAtRandom({&first, &second}, tasks, 11);
  single.StartSingle(kTrainingTasks);
  for (SynchronousJob* run : {&first, &second, &single}) run->AwaitEnd();
  const auto files = first.Files();
  ASSERT_EQ(files.size(), 2u) << "an index and its data";
  if (&tasks == &kAllReduce) {
    EXPECT_NE(first.Output("worker1").find("transport=\"shared memory\" ranks=3"),
              std::string::npos);
    EXPECT_NE(second.Output("worker1").find("transport=tcp ranks=3"), std::string::npos);
  }
  EXPECT_TRUE(files == second.Files()) << "the checkpoints differ";
  const std::vector<float> weights = first.Weights(), expected = single.Weights();
  ASSERT_EQ(weights.size(), 6u * 16 + 16 + 16 + 1);
  ASSERT_EQ(expected.size(), weights.size());
  EXPECT_LE(RelativeDifference(weights, expected), 1e-4);
}

INSTANTIATE_TEST_SUITE_P(, ReproducibleTest,
                         testing::Values(Case{"adam", kAdam, &kServers},
                                         Case{"clipped", kClipped, &kServers},
                                         Case{"all_reduce_adam", kAdam, &kAllReduce},
                                         Case{"all_reduce_clipped", kClipped, &kAllReduce}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace tfjob::processes
