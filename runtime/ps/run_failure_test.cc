// Tests that the permanent failure of a run is reported by all tasks with the same message.
#include "runtime/state/run_failure.h"

#include <gtest/gtest.h>

#include "runtime/ps/test_tasks.h"
#include "runtime/rpc/pipe_connector.h"

namespace tfjob::ps {
namespace {

class RunFailureTest : public ParameterServerTest {};

TEST_F(RunFailureTest, ReachesEveryTaskAndEndsTheServersOnceTheChiefKnows) {
  StartServers(2);
  const Definition definition = TwoVariables();
  Trainer worker(definition);
  {
    Trainer chief(definition), other(definition);
    ASSERT_EQ(chief.Join(Chief(definition)), OkStatus());
    ASSERT_EQ(worker.Join(Worker(0)), OkStatus());
    ASSERT_EQ(other.Join(Worker(1)), OkStatus());
    ASSERT_EQ(worker.client->Fail(state::RunFailure("step 3: bad\nnews")), OkStatus());
    const auto train_on = [](Trainer& trainer) {
      Status status;
      while (status.ok()) status = trainer.Train();
      return status;
    };
    EXPECT_EQ(train_on(other), state::RunFailure("step 3: bad?news"));
    EXPECT_EQ(train_on(chief), state::RunFailure("step 3: bad?news"));
    EXPECT_EQ(chief.client->TakeSnapshot().status(), state::RunFailure("step 3: bad?news"));
    // The chief dies before it can record the failure.
  }
  Trainer chief(definition);
  EXPECT_EQ(chief.Join(Chief(definition)), state::RunFailure("step 3: bad?news"));
  EXPECT_EQ(chief.client->Fail(state::RunFailure("step 3: bad?news")), OkStatus());
  for (auto& task : tasks_)
    EXPECT_EQ(task->ps().WaitUntilFinished(), state::RunFailure("step 3: bad?news"));
}

// The sparse form of TF_CONFIG does not name the chief.
TEST(RunFailure, EndsAServerThatDoesNotKnowTheChiefOnceTheTaskThatFilledItSaysSo) {
  rpc::PipeConnector connector;
  std::unique_ptr<ParameterServer> ps = *ParameterServer::Create(
      {.identity = Task("ps", 0), .chief_type = "", .connector = &connector});
  connector.Listen("here", kParameterService, Task("ps", 0), *ps);
  {
    const Definition definition = TwoVariables();
    Trainer chief(definition), worker(definition);
    ASSERT_EQ(chief.Join({.servers = {"here"},
                          .identity = Task("worker", 0),
                          .chief = true,
                          .provide_state = [&] { return InitialState(definition, 3); },
                          .patience = 30s,
                          .connector = &connector}),
              OkStatus());
    ASSERT_EQ(worker.Join({.servers = {"here"},
                           .identity = Task("worker", 1),
                           .patience = 30s,
                           .connector = &connector}),
              OkStatus());
    EXPECT_EQ(worker.client->Fail(state::RunFailure("the worker's words")), OkStatus());
    // The chief's message replaces the worker's. If the worker's report had stopped the server, the
    // server would still have the worker's message.
    EXPECT_EQ(chief.client->Fail(state::RunFailure("the chief's words")), OkStatus());
    EXPECT_EQ(ps->WaitUntilFinished(), state::RunFailure("the chief's words"));
  }
  connector.Close("here");
}

}  // namespace
}  // namespace tfjob::ps
