// Tests a parameter server with large updates, which are applied by a thread pool that all streams
// share, as in production.
#include <gtest/gtest.h>

#include <thread>

#include "runtime/base/thread_pool.h"
#include "runtime/ps/test_tasks.h"
#include "runtime/rpc/pipe_connector.h"

namespace tfjob::ps {
namespace {

constexpr int kWorkers = 3;
constexpr int kSteps = 8;

class PoolTest : public testing::TestWithParam<Mode> {
 protected:
  PoolTest() {
    definition_.mode = GetParam();
    definition_.replicas_to_aggregate = kWorkers + 1;
    definition_.state.variables = {{.name = "w", .shape = {500, 300}}, {.name = "b", .shape = {7}}};
    definition_.state.optimizer.learning_rate = 0.5;
    definition_.max_shard_bytes = 400'000;  // yields two shards, each large enough to use the pool
    server_ =
        *ParameterServer::Create({.identity = Task("ps", 0), .pool = &pool_, .connector = &pipe_});
    pipe_.Listen("ps:1", kParameterService, Task("ps", 0), *server_);
  }

  // Returns the options of the chief, or of the worker with this index.
  ClientOptions Options(int worker, bool chief) {
    ClientOptions options{.servers = {"ps:1"}, .identity = Task("worker", worker), .patience = 30s};
    options.connector = &pipe_;
    if (chief) {
      options.chief = true;
      options.identity.task_type = "chief";
      options.provide_state = [this] { return InitialState(definition_, 100); };
    }
    return options;
  }
  // Runs the steps of a task whose gradients are all 1.
  void Train(Trainer& trainer) {
    for (int step = 0; step < kSteps; ++step) {
      ASSERT_EQ(trainer.Train(), OkStatus());
      while (trainer.last.again || trainer.last.dropped) ASSERT_EQ(trainer.Train(), OkStatus());
    }
  }

  Definition definition_;
  ThreadPool pool_{"compute", 3};
  std::unique_ptr<ParameterServer> server_;
  rpc::PipeConnector pipe_;  // closes the streams before the server is destroyed
};

TEST_P(PoolTest, AppliesEveryGradientOfEveryTaskOnce) {
  std::vector<std::unique_ptr<Trainer>> trainers;
  for (int i = 0; i <= kWorkers; ++i) {
    trainers.push_back(std::make_unique<Trainer>(definition_));
    ASSERT_EQ(trainers.back()->Join(Options(i == 0 ? 0 : i - 1, i == 0)), OkStatus());
  }
  std::vector<std::thread> threads;
  for (const auto& trainer : trainers) threads.emplace_back([&] { Train(*trainer); });
  for (std::thread& thread : threads) thread.join();
  const StatusOr<state::Snapshot> snapshot = trainers[0]->client->TakeSnapshot();
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  // A synchronous step subtracts the mean of the gradients once; asynchronous tasks subtract each
  // gradient.
  const bool synchronous = GetParam() == Mode::kSynchronous;
  const float steps = synchronous ? kSteps : kSteps * (kWorkers + 1);
  for (const state::VariableState& variable : snapshot->variables) {
    for (const float value : variable.value.data<float>()) ASSERT_EQ(value, 100 - 0.5f * steps);
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, PoolTest, testing::Values(Mode::kAsynchronous, Mode::kSynchronous),
                         [](const auto& info) {
                           return std::string(info.param == Mode::kSynchronous ? "Synchronous"
                                                                               : "Asynchronous");
                         });

}  // namespace
}  // namespace tfjob::ps
