// Tests the errors of custom training loops in jobs of several tasks.
#include <gtest/gtest.h>

#include "runtime/api/loops/test_job_loops.h"

namespace tfjob::api::loops_test {
namespace {

TEST(JobLoopErrors, DifferentFunctionsAreAnErrorThatNamesBoth) {
  OnAllTasks(Tasks(2), [](const Place& place) {
    LinearLoop loop(place);
    Function one = loop.TrainStep(), other = loop.TrainStep();
    const Batch batch{.inputs = {{"x", Column({1})}, {"y", Column({0})}}};
    (void)one(batch).value();
    const Status status = (place.rank == 0 ? one : other)(batch).status();
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
    EXPECT_NE(status.message().find("call 2 of chief 0 is function 0 (x float32[1], y float32[1]) "
                                    "of model linear, but call 2 of worker 0 is function 1 "),
              std::string::npos)
        << status;
    EXPECT_EQ(one(batch).status().message(), status.message()) << "no further call is possible";
    loop.model.Weights().value();
  });
}

TEST(JobLoopErrors, DifferentStepsOfTheSameFormAreAnError) {
  OnAllTasks(Tasks(2), [](const Place& place) {
    const Optimizer rate = SGD{.learning_rate = place.rank == 0 ? 0.1 : 0.2};
    CompiledModel model = Classifier(place, rate);
    const Status status =
        model.Step({.x = Rows(place, 0, 4, 5), .y = Labels(place, 0, 4)}).status();
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
    EXPECT_NE(status.message().find("optimizers"), std::string::npos) << status;
  });
}

TEST(JobLoopErrors, ATaskThatEndsEarlyIsNamed) {
  OnAllTasks(Tasks(2), [](const Place& place) {
    LinearLoop loop(place);
    Function train_step = loop.TrainStep();
    const Batch batch{.inputs = {{"x", Column({1})}, {"y", Column({0})}}};
    for (int i = 0; i < 2; ++i) (void)train_step(batch).value();
    if (place.rank == 1) return;
    const Status status = train_step(batch).status();
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
    EXPECT_NE(status.message().find("call 3 of worker 0 is the end of its session"),
              std::string::npos)
        << status;
  });
}

TEST(JobLoopErrors, AnInvalidBatchOfOneTaskIsAnErrorInAllAndTheyContinue) {
  OnAllTasks(Tasks(2), [](const Place& place) {
    LinearLoop loop(place);
    Function train_step = loop.TrainStep();
    const Batch valid{.inputs = {{"x", Column({1})}, {"y", Column({0})}}};
    const Batch invalid{.inputs = {{"x", Column({1, 2})}, {"y", Column({0})}}};
    const Status status = train_step(place.rank == 1 ? invalid : valid).status();
    EXPECT_EQ(status.code(), place.rank == 1 ? StatusCode::kInvalidArgument : StatusCode::kAborted);
    EXPECT_NE(status.message().find("y: expected 2 examples"), std::string::npos) << status;
    EXPECT_TRUE(train_step(valid).ok());
    EXPECT_EQ(loop.model.step(), 1);
    CompiledModel model = Classifier(place, SGD{});
    EXPECT_FALSE(model.Step({}).ok()) << "another session cannot join the job again";
  });
}

TEST(JobLoopErrors, AnInvalidLabelEndsTheLoopInAllTasks) {
  OnAllTasks(Tasks(2), [](const Place& place) {
    CompiledModel model = Classifier(place, SGD{});
    const Tensor x = Rows(place, 0, 4, 5);
    const int64_t label = place.rank == 1 ? 9 : 0;
    const Tensor y = Tensor::Of({2}, std::vector<int64_t>{0, label}).value();
    EXPECT_FALSE(model.TestOnBatch({.x = x, .y = y}).ok());
    const Status status = model.Step({.x = x, .y = y}).status();
    EXPECT_FALSE(status.ok());
    EXPECT_NE(status.message().find("9"), std::string::npos) << status;
    EXPECT_FALSE(model.Step({.x = x, .y = y}).ok());
    EXPECT_EQ(model.step(), 0);
  });
}

TEST(JobLoopErrors, OtherStrategiesAndRolesAreRefused) {
  const auto expect = [](const std::vector<Task>& tasks, const std::string& message,
                         const config::StrategyConfig& config) {
    OnAllTasks(
        tasks,
        [&](const Place& place) {
          CompiledModel model = Classifier(place, SGD{});
          const Status status =
              model.Step({.x = Rows({}, 0, 4, 5), .y = Labels({}, 0, 4)}).status();
          if (place.rank + 1 < place.ranks) return;
          EXPECT_EQ(status.code(), StatusCode::kUnimplemented);
          EXPECT_NE(status.message().find(message), std::string::npos) << status;
        },
        config);
  };
  expect({{"chief", 0}, {"ps", 0}}, "remove the ps tasks, so that the job trains with all-reduce",
         {});
  expect({{"chief", 0}, {"evaluator", 0}}, "an evaluator takes no steps", {});
  config::StrategyConfig shrinks;
  shrinks.kind = config::StrategyKind::kMultiWorkerMirrored;
  shrinks.on_failure = config::OnFailure::kShrink;
  expect(Tasks(2), "on_failure: ", shrinks);
}

TEST(JobLoopErrors, AfterALoopTheTaskCannotFitInTheSameJob) {
  OnAllTasks(Tasks(2), [](const Place& place) {
    CompiledModel model = Classifier(place, SGD{});
    const Batch batch{.x = Rows(place, 0, 4, 5), .y = Labels(place, 0, 4)};
    (void)model.Step(batch).value();
    const Status status = model.Fit(batch, {.verbose = Verbose::kSilent}).status();
    EXPECT_EQ(status.code(), StatusCode::kUnimplemented);
    EXPECT_NE(status.message().find("already taken part"), std::string::npos) << status;
  });
}

TEST(JobLoopErrors, ATaskAloneNeedsNoGroup) {
  StrategyData data;
  data.config.kind = config::StrategyKind::kMultiWorkerMirrored;
  CompiledModel model = Classifier({Access::MakeStrategy(std::move(data))}, SGD{});
  EXPECT_TRUE(model.Step({.x = Rows({}, 0, 4, 5), .y = Labels({}, 0, 4)}).ok());
}

}  // namespace
}  // namespace tfjob::api::loops_test
