#include "runtime/steps/step_group.h"

#include <gtest/gtest.h>

#include <functional>
#include <span>

#include "runtime/base/thread.h"
#include "runtime/collectives/shared/thread_communicator.h"

namespace tfjob::steps {
namespace {

// Calls the body for each task of a group, each on its own thread.
void OnAllTasks(int tasks, const std::function<void(StepGroup&)>& body) {
  auto communicators = collectives::MakeThreadCommunicators(tasks);
  std::vector<std::string> names = {"chief 0"};
  for (int i = 1; i < tasks; ++i) names.push_back(StrCat("worker ", i - 1));
  std::vector<Thread> threads;
  for (auto& communicator : communicators) {
    threads.emplace_back("task", [&body, &names, &communicator] {
      StepGroup group(std::move(communicator), names);
      body(group);
    });
  }
  for (Thread& thread : threads) thread.Join();
}

// Makes one announcement per task, and expects the same error in all of them.
std::string CommonError(const std::vector<Announcement>& announced) {
  std::vector<Status> errors(announced.size());
  OnAllTasks(static_cast<int>(announced.size()), [&](StepGroup& group) {
    const auto rank = static_cast<size_t>(group.rank());
    errors[rank] = group.Announce(announced[rank]).status();
    EXPECT_EQ(group.broken(), errors[rank]);
    EXPECT_EQ(group.Announce(announced[0]).status(), errors[rank]) << "the group goes on";
  });
  for (const Status& error : errors) {
    EXPECT_TRUE(absl::IsFailedPrecondition(error)) << error;
    EXPECT_EQ(error, errors[0]);
  }
  return std::string(Message(errors[0]));
}

TEST(StepGroup, AllTasksLearnTheTotals) {
  OnAllTasks(3, [](StepGroup& group) {
    const bool middle = group.rank() == 1;
    for (int call = 0; call < 3; ++call) {
      const auto agreed = group.Announce({.call = "Step",
                                          .digest = 7,
                                          .steps = {5, middle ? -1 : 4},
                                          .examples = 2 - group.rank(),
                                          .counts = {10, group.rank()},
                                          .connects = middle && call == 0});
      ASSERT_TRUE(agreed.ok()) << agreed.status();
      EXPECT_EQ(agreed->examples, 3);
      EXPECT_EQ(agreed->tasks_with_examples, 2);
      EXPECT_EQ(agreed->sends, (std::vector<bool>{false, true}));
      EXPECT_EQ(agreed->counts, (std::vector<int64_t>{30, 3}));
      EXPECT_EQ(agreed->connects, call == 0);
    }
    EXPECT_TRUE(group.End().ok());
  });
}

TEST(StepGroup, DifferentCallsAreAnErrorThatNamesBothSides) {
  const std::string error = CommonError({{.call = "Step of model a", .examples = 1},
                                         {.call = "Step of model a", .examples = 1},
                                         {.call = "function 1 (x float32[2])", .examples = 1}});
  EXPECT_EQ(error.find("call 1 of chief 0 is Step of model a, but call 1 of worker 1 is function 1 "
                       "(x float32[2]); "),
            0)
      << error;
}

TEST(StepGroup, DifferentPropertiesOfTheSameCallAreAnError) {
  EXPECT_NE(CommonError({{.call = "Step", .digest = 1, .examples = 1},
                         {.call = "Step", .digest = 2, .examples = 1}})
                .find("call 1 of chief 0 is Step, as in worker 0, but the two differ in their "
                      "operations"),
            std::string::npos);
  EXPECT_NE(CommonError({{.call = "Step", .steps = {3}, .examples = 1},
                         {.call = "Step", .steps = {4}, .examples = 1}})
                .find("the model has made 3 updates in chief 0 and 4 in worker 0"),
            std::string::npos);
}

TEST(StepGroup, ATaskThatEndsDoesNotLeaveTheOthersWaiting) {
  OnAllTasks(2, [](StepGroup& group) {
    const Status status =
        group.rank() == 0 ? group.Announce({.call = "Step", .examples = 1}).status() : group.End();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_NE(Message(status).find("call 1 of worker 0 is the end of its session"),
              std::string::npos)
        << status;
  });
}

TEST(StepGroup, AfterTheErrorOfOneTaskAllContinue) {
  OnAllTasks(2, [](StepGroup& group) {
    Announcement announced{.call = "Step", .examples = 1};
    if (group.rank() == 1) announced.error = InvalidArgument("x: expected rows");
    const Status status = group.Announce(announced).status();
    if (group.rank() == 1) {
      EXPECT_EQ(status, announced.error);
    } else {
      EXPECT_EQ(status, Aborted("worker 0 could not take part in call 1, Step: x: expected rows"));
    }
    EXPECT_TRUE(absl::IsInvalidArgument(group.Announce({.call = "Step"}).status()))
        << "no task has examples";
    EXPECT_TRUE(group.Announce({.call = "Step", .examples = 1}).ok());
  });
}

TEST(StepGroup, AFailureDuringACallReachesTheOthers) {
  OnAllTasks(2, [](StepGroup& group) {
    ASSERT_TRUE(group.Announce({.call = "Step", .examples = 1}).ok());
    if (group.rank() == 1) {
      group.Fail(InvalidArgument("the label 9"));
      EXPECT_TRUE(absl::IsFailedPrecondition(group.broken()));
      return;
    }
    const Status status = group.Check(group.communicator().Barrier());
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_NE(Message(status).find("worker 0 has failed: the label 9"), std::string::npos)
        << status;
    EXPECT_EQ(group.Announce({.call = "Step", .examples = 1}).status(), status);
  });
}

// A peer that does not follow the protocol only causes an error.
TEST(StepGroup, InvalidAnnouncementsAreErrors) {
  for (
      const std::string text :
      {R"(x)", R"({})", R"([1])",
       R"({"number":1,"call":"Step","digest":"0","steps":[],"counts":[],"examples":-1,"connects":false})",
       R"({"number":1,"call":"Step","digest":"0","steps":[],"counts":[9e99],"examples":1,"connects":false})"}) {
    OnAllTasks(2, [&](StepGroup& group) {
      if (group.rank() == 1) {
        std::vector<std::byte> all;
        std::vector<size_t> sizes;
        (void)group.communicator().AllGatherVariable(std::as_bytes(std::span(text)), 128 << 10, all,
                                                     sizes);
        return;
      }
      const Status status = group.Announce({.call = "Step", .examples = 1}).status();
      EXPECT_TRUE(absl::IsUnavailable(status)) << status;
      EXPECT_NE(Message(status).find("worker 0"), std::string::npos) << status;
    });
  }
}

}  // namespace
}  // namespace tfjob::steps
