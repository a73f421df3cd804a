#include "runtime/api/fit/epoch_record.h"

#include <gtest/gtest.h>

namespace tfjob::api {
namespace {

using Values = std::vector<double>;

TEST(EpochRecord, EpochsThatAreTrainedAgainReplaceTheEarlierOnes) {
  EpochRecord record;
  record.Add(3, {{"loss", 0.9}});
  record.Add(4, {{"loss", 0.8}, {"val_loss", 1.0}});
  record.Add(5, {{"loss", 0.7}});
  record.Remove(6);
  EXPECT_EQ(record.history().epoch.size(), 3u);
  record.Remove(4);
  EXPECT_EQ(record.history().epoch, (std::vector<int64_t>{3}));
  EXPECT_EQ(record.history().values, (std::map<std::string, Values>{{"loss", {0.9}}}));
  record.Add(4, {{"loss", 0.6}, {"val_loss", 0.5}});
  EXPECT_EQ(record.history().epoch, (std::vector<int64_t>{3, 4}));
  EXPECT_EQ(record.history().values,
            (std::map<std::string, Values>{{"loss", {0.9, 0.6}}, {"val_loss", {0.5}}}));
  record.Remove(0);
  EXPECT_TRUE(record.history().epoch.empty());
  EXPECT_TRUE(record.history().values.empty());
}

}  // namespace
}  // namespace tfjob::api
