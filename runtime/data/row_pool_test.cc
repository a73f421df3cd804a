#include "runtime/data/row_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

namespace tfjob::data {
namespace {

TEST(RowPool, ReadsEachRowOnce) {
  for (const int threads : {1, 2, 5}) {
    RowPool pool(threads);
    for (const size_t rows : {0, 1, 3, 100}) {
      std::vector<std::atomic<int>> reads(rows);
      std::vector<std::atomic<int>> in_lane(pool.lanes());
      const Status status = pool.ForEach(rows, [&](size_t lane, size_t row) {
        EXPECT_EQ(in_lane[lane].fetch_add(1), 0) << "a lane is one thread's";
        ++reads[row];
        --in_lane[lane];
        return OkStatus();
      });
      EXPECT_TRUE(status.ok()) << status;
      for (const std::atomic<int>& count : reads) EXPECT_EQ(count, 1);
    }
  }
}

TEST(RowPool, ReturnsTheErrorOfTheLowestRow) {
  for (const int threads : {1, 3}) {
    RowPool pool(threads);
    std::atomic<size_t> reads = 0;
    const Status status = pool.ForEach(10'000, [&](size_t, size_t row) -> Status {
      ++reads;
      if (row < 20) return OkStatus();
      return DataLoss("row ", row);
    });
    // Rows are started in order, so row 20 was started before any error occurred.
    EXPECT_EQ(Message(status), "row 20");
    EXPECT_LE(reads, 20u + static_cast<size_t>(threads));
    EXPECT_TRUE(pool.ForEach(3, [](size_t, size_t) { return OkStatus(); }).ok())
        << "an error does not affect later calls";
  }
}

}  // namespace
}  // namespace tfjob::data
