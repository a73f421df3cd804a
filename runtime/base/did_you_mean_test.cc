#include "runtime/base/did_you_mean.h"

#include <gtest/gtest.h>

#include <vector>

namespace tfjob {
namespace {

const std::vector<std::string> kNames = {"batch_size", "epochs", "seed", "model_dir"};

TEST(DidYouMean, FindsTypingErrors) {
  EXPECT_EQ(NearestName("batchsize", kNames), "batch_size");
  EXPECT_EQ(NearestName("Epochs", kNames), "epochs");
  EXPECT_EQ(NearestName("sede", kNames), "seed");
  EXPECT_EQ(NearestName("modeldri", kNames), "model_dir");
}

TEST(DidYouMean, ListsTheNamesWhenNothingIsNear) {
  EXPECT_EQ(NearestName("optimizer", kNames), "");
  EXPECT_EQ(DidYouMean("optimizer", kNames), "; known: batch_size, epochs, seed, model_dir");
  EXPECT_EQ(DidYouMean("epoch", kNames), "; did you mean \"epochs\"?");
}

TEST(DidYouMean, TakesWordsOfAnyLength) {
  EXPECT_EQ(NearestName("", kNames), "");
  EXPECT_EQ(NearestName(std::string(1'000'000, 'x'), kNames), "");
}

}  // namespace
}  // namespace tfjob
