// Tests how much memory parameter servers use, and that all servers count the same steps.
#include <gtest/gtest.h>

#include <bit>
#include <fstream>
#include <thread>

#include "runtime/ps/test_tasks.h"
#include "runtime/rpc/pipe_connector.h"
#include "tests/sanitized.h"

namespace tfjob::ps {
namespace {

constexpr int64_t kMegabyte = 1 << 20;

// Returns the peak memory of this process since the last call of ResetPeak, in bytes.
int64_t Peak() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    int64_t kilobytes = 0;
    if (word == "VmHWM:" && status >> kilobytes) return kilobytes * 1024;
  }
  return 0;
}

// Sets the peak to the process's current memory. Returns false if the kernel does not permit this.
bool ResetPeak() {
  std::ofstream clear("/proc/self/clear_refs");
  clear << "5";
  return clear.good();
}

class MemoryTest : public ParameterServerTest {};

// A rollback frees the values and slots of the old state before the new state arrives.
TEST_F(MemoryTest, ARollbackNeedsNoSecondCopyOfTheState) {
  if (kSanitized) GTEST_SKIP() << "sanitizers keep freed memory";
  StartServers(1);
  Definition definition;
  definition.mode = Mode::kSynchronous;
  definition.state.variables = {{.name = "w", .shape = {32 * kMegabyte / 4}}};
  definition.state.optimizer = optimizer::Optimizer::Default(optimizer::Kind::kAdam);
  definition.max_shard_bytes = kMegabyte;
  const state::Snapshot state = InitialState(definition, 1);
  ClientOptions options = Chief(definition);
  options.provide_state = [&] { return state; };
  Trainer chief(definition);
  ASSERT_EQ(chief.Join(options), OkStatus());
  ASSERT_EQ(chief.Train(), OkStatus());
  ASSERT_EQ(chief.client->Restore(state), OkStatus());
  ASSERT_TRUE(ResetPeak());
  const int64_t before = Peak();
  ASSERT_EQ(chief.client->Restore(state), OkStatus());
  // A second copy of the state would take another 96 MiB. Frames in flight and the allocator's
  // overhead take much less.
  EXPECT_LT(Peak() - before, 48 * kMegabyte);
}

// The chief and seven workers send their gradients one after another. The gradients of neighbours
// are summed as soon as both have arrived, so the server needs one buffer per 1-bit in the binary
// representation of the number of gradients.
TEST_F(MemoryTest, GradientsThatAreCertainToCountAreSummedBeforeTheLastArrives) {
  StartServers(1);
  Definition definition = TwoVariables(Mode::kSynchronous);
  definition.state.variables = {{.name = "w", .shape = {kMegabyte}}};
  definition.max_shard_bytes = kMegabyte;
  definition.replicas_to_aggregate = 8;
  std::vector<std::unique_ptr<Trainer>> trainers;
  for (int i = 0; i < 8; ++i) {
    trainers.push_back(std::make_unique<Trainer>(definition));
    ASSERT_EQ(trainers.back()->Join(i == 0 ? Chief(definition) : Worker(i - 1)), OkStatus());
    trainers.back()->SetGradients(static_cast<float>(i + 1));
  }
  for (unsigned sent = 1; sent < 8; ++sent) {
    Trainer& trainer = *trainers[sent - 1];
    ASSERT_EQ(trainer.client->BeginStep(trainer.gradient_spans(), trainer.value_spans(), 0),
              OkStatus());
    trainer.client->MarkReady(0);
    const int64_t expected = std::popcount(sent) * 4 * kMegabyte;
    // Wait until the size has had the expected value for 100 ms, because the size may also have
    // this value briefly while a gradient arrives and is added to other gradients.
    const auto deadline = std::chrono::steady_clock::now() + 20s;
    int64_t staged = 0;
    for (int equal = 0; equal < 100 && std::chrono::steady_clock::now() < deadline;) {
      std::this_thread::sleep_for(1ms);
      staged = tasks_[0]->ps().State().staged_bytes;
      equal = staged == expected ? equal + 1 : 0;
    }
    EXPECT_EQ(staged, expected) << sent;
  }
  ASSERT_EQ(trainers.back()->Train(), OkStatus());
  for (int i = 0; i < 7; ++i) {
    Trainer& trainer = *trainers[static_cast<size_t>(i)];
    ASSERT_TRUE(trainer.client->EndStep().ok());
    // The mean gradient is 4.5, the learning rate 0.5.
    EXPECT_EQ(trainer.Value(), 97.75f);
  }
  EXPECT_EQ(trainers.back()->Value(), 97.75f);
}

// With separate buffers per stream, a server with six tasks would keep six times as many buffers.
TEST(Buffers, AreSharedByTheStreamsAndLimited) {
  rpc::PipeConnector pipe;
  auto ps = *ParameterServer::Create(
      {.identity = Task("ps", 0), .max_bytes = 16 * kMegabyte, .connector = &pipe});
  pipe.Listen("here", kParameterService, Task("ps", 0), *ps);
  Definition definition = TwoVariables();
  definition.state.variables = {{.name = "w", .shape = {kMegabyte / 4}}};
  definition.max_shard_bytes = kMegabyte / 8;
  std::vector<std::unique_ptr<Trainer>> trainers;
  for (int i = 0; i < 6; ++i) {
    trainers.push_back(std::make_unique<Trainer>(definition));
    ClientOptions options{.servers = {"here"}, .identity = Task("worker", i), .patience = 30s};
    options.connector = &pipe;
    if (i == 0) {
      options.identity.task_type = "chief";
      options.chief = true;
      options.provide_state = [&] { return InitialState(definition, 1); };
    }
    ASSERT_EQ(trainers.back()->Join(options), OkStatus());
    ASSERT_EQ(trainers.back()->Train(), OkStatus());
  }
  // The last answer's buffer may still be in use for a moment.
  const auto deadline = std::chrono::steady_clock::now() + 20s;
  while (ps->State().buffer_bytes > kMegabyte && std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_GT(ps->State().buffer_bytes, 0);
  EXPECT_LE(ps->State().buffer_bytes, kMegabyte) << "a sixteenth of the server's memory";
  trainers.clear();
  pipe.Close("here");
}

// Each contribution goes to all servers, so all servers correct Adam's moments in the same way,
// even for a contribution that was computed from old values.
TEST_F(ParameterServerTest, AllServersCountTheStepsOfAsynchronousTasks) {
  StartServers(2);
  Definition definition;
  definition.state.variables = {{.name = "on_ps_0", .shape = {4}},
                                {.name = "on_ps_1", .shape = {4}}};
  definition.state.optimizer = optimizer::Optimizer::Default(optimizer::Kind::kAdam);
  std::vector<std::unique_ptr<Trainer>> trainers;
  for (int i = 0; i < 4; ++i) {
    trainers.push_back(std::make_unique<Trainer>(definition));
    ASSERT_EQ(trainers.back()->Join(i == 0 ? Chief(definition, 0) : Worker(i)), OkStatus());
  }
  // All trainers have read the values of step 0, so the last gradient is three steps late.
  for (auto& trainer : trainers) ASSERT_EQ(trainer->Train(), OkStatus());
  EXPECT_EQ(trainers.back()->last.staleness, 3);
  EXPECT_EQ(trainers.back()->last.global_step, 4);
  // Value() returns NaN unless all elements of both variables are equal.
  EXPECT_FALSE(std::isnan(trainers.back()->Value()));
  for (auto& task : tasks_) EXPECT_EQ(task->ps().State().global_step, 4);
  // A checkpoint contains one counter, that of ps 0.
  StatusOr<state::Snapshot> copy = trainers.front()->client->TakeSnapshot();
  ASSERT_TRUE(copy.ok()) << copy.status();
  const std::string counted = "-1 chief 0 ";
  const size_t first = copy->ledger.find(counted);
  ASSERT_NE(first, std::string::npos) << copy->ledger;
  EXPECT_EQ(copy->ledger.find(counted, first + 1), std::string::npos) << copy->ledger;
}

}  // namespace
}  // namespace tfjob::ps
