// Tests the end of Fit: which learning rate and values the model has afterwards, and which
// callbacks are called.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <utility>

#include "tests/api/programs.h"

namespace {

tj::FitOptions With(std::vector<tj::Callback> callbacks, int64_t epochs) {
  tj::FitOptions options = Quietly(epochs);
  options.callbacks = std::move(callbacks);
  return options;
}

// Returns a callback that sets the learning rate to `rate` at the end of epoch `wanted`.
tj::LambdaCallback SetRateAfter(int64_t wanted, double rate) {
  return {.on_epoch_end = [=](tj::FitControl& run, int64_t epoch, const tj::Metrics&) {
    return epoch == wanted ? run.SetLearningRate(rate) : tj::Status();
  }};
}

// Calls Fit, and returns the learning rate at its start.
double RateOf(tj::CompiledModel& model) {
  double rate = -1;
  const tj::LambdaCallback record = {.on_train_begin = [&](tj::FitControl& run) {
    rate = run.learning_rate();
    return tj::Status();
  }};
  EXPECT_TRUE(model.Fit(Points(64), With({record}, 1)).ok());
  return rate;
}

TEST(SetLearningRate, IsForLaterCallsOfFitAlsoInTheLastEpoch) {
  std::optional<tj::CompiledModel> copy;
  const tj::LambdaCallback take = {
      .on_epoch_end = [&](tj::FitControl& run, int64_t, const tj::Metrics&) {
        copy = run.Copy().value();
        return tj::Status();
      }};
  tj::CompiledModel model = Compiled();
  ASSERT_TRUE(model.Fit(Points(64), With({SetRateAfter(1, 0.05), take}, 2)).ok());
  EXPECT_EQ(model.step(), 4);
  EXPECT_EQ(RateOf(model), 0.05);
  EXPECT_EQ(RateOf(copy.value()), 0.05);
}

TEST(SetLearningRate, InTheLastEpochDoesNotProlongAFitThatEndsWithEarlierValues) {
  std::shared_ptr<const tj::FitValues> first;
  const tj::LambdaCallback restore = {
      .on_epoch_end =
          [&](tj::FitControl& run, int64_t epoch, const tj::Metrics&) {
            if (epoch == 0) first = run.Values().value();
            return tj::Status();
          },
      .on_train_end =
          [&](tj::FitControl& run) {
            run.EndWith(first);
            return tj::Status();
          }};
  tj::CompiledModel model = Compiled();
  const auto history = model.Fit(Points(64), With({SetRateAfter(2, 0.05), restore}, 3));
  ASSERT_TRUE(history.ok()) << history.status();
  EXPECT_EQ(history->epoch, (std::vector<int64_t>{0, 1, 2}));
  EXPECT_EQ(model.step(), 2);
}

TEST(CallbackHooks, OnlyThoseThatHaveBegunAreAborted) {
  class Counter : public tj::CallbackHooks {
   public:
    explicit Counter(bool fails) : fails_(fails) {}
    tj::Status OnTrainBegin(tj::FitControl&) override {
      return fails_ ? tj::Status(tj::StatusCode::kAborted, "no") : tj::Status();
    }
    void OnTrainAbort() override { ++aborted; }
    int aborted = 0;

   private:
    const bool fails_;
  };
  const auto first = std::make_shared<Counter>(false), second = std::make_shared<Counter>(true),
             third = std::make_shared<Counter>(false);
  EXPECT_EQ(Compiled().Fit(Points(64), With({first, second, third}, 1)).status().message(), "no");
  EXPECT_EQ(first->aborted, 1);
  EXPECT_EQ(second->aborted, 0);
  EXPECT_EQ(third->aborted, 0);
}

}  // namespace
