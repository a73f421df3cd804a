// Tests which processes take part after a parameter server was restarted without what it knew.
#include <gtest/gtest.h>

#include <thread>

#include "runtime/ps/test_tasks.h"

namespace tfjob::ps {
namespace {

using RestartTest = ParameterServerTest;

// The second process of the chief has a greater incarnation than the new ps 0 can know; ps 1 knows
// it, although it was filled again.
TEST_F(RestartTest, ANewServerLearnsIncarnationsFromTheOthersThatItsChiefHasFilled) {
  StartServers(2);
  const Definition definition = TwoVariables(Mode::kSynchronous);
  for (const int64_t process : {1, 2}) {
    Trainer chief(definition);
    ClientOptions options = Chief(definition);
    options.identity.incarnation = process;
    ASSERT_EQ(chief.Join(options), OkStatus());
    ASSERT_EQ(chief.Train(), OkStatus());
  }
  tasks_[0]->Kill();
  tasks_[0]->Start(2);
  Trainer chief(definition);
  ClientOptions options = Chief(definition);
  options.identity.incarnation = 3;
  options.refusal_patience = Duration(0);
  ASSERT_EQ(chief.Join(options), OkStatus());
  ASSERT_EQ(chief.Train(), OkStatus());
  EXPECT_EQ(chief.last.global_step, 1);
}

// The older process was cut off from its servers while its successor was started.
TEST_F(RestartTest, OfTwoLivingProcessesOfATaskTheLaterOneStays) {
  StartServers(1);
  const Definition definition = TwoVariables();
  Trainer chief(definition), older(definition), later(definition);
  ASSERT_EQ(chief.Join(Chief(definition)), OkStatus());
  ClientOptions options = Worker(1, 1);
  options.refusal_patience = Duration(0);
  ASSERT_EQ(older.Join(options), OkStatus());
  ASSERT_EQ(later.Join(Worker(1, 2)), OkStatus());
  tasks_[0]->Kill();
  tasks_[0]->Start(2);
  ASSERT_EQ(chief.Train(), OkStatus());
  ASSERT_EQ(later.Train(), OkStatus());
  for (int i = 0; i < 3; ++i) {
    const Status refused = older.Train();
    EXPECT_EQ(refused.code(), StatusCode::kFailedPrecondition) << refused;
    EXPECT_NE(Message(refused).find("a later start of worker 1 is known"), std::string_view::npos)
        << refused;
    EXPECT_NE(Message(refused).find("stop the older process"), std::string_view::npos) << refused;
    EXPECT_EQ(later.Train(), OkStatus());
  }
}

}  // namespace
}  // namespace tfjob::ps
