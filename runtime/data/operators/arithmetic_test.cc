// Compares the examples that operators choose with those that slow but obvious implementations
// choose.
#include <gtest/gtest.h>

#include <map>
#include <numeric>
#include <optional>

#include "runtime/base/philox.h"
#include "runtime/data/operators/concatenation.h"
#include "runtime/data/operators/interleaving.h"
#include "runtime/data/operators/kept_rows.h"
#include "runtime/data/operators/mixture.h"
#include "runtime/data/operators/selection.h"

namespace tfjob::data {
namespace {

template <typename Layout>
std::vector<Place> PlacesOf(const Layout& layout) {
  std::vector<Place> places;
  for (int64_t i = 0; i < layout.size(); ++i) places.push_back(layout.At(i));
  return places;
}

std::vector<int64_t> RandomSizes(PhiloxStream& random, uint32_t most_sources, uint32_t most) {
  std::vector<int64_t> sizes(1 + random.Below(most_sources));
  for (int64_t& size : sizes) size = 1 + random.Below(most);
  return sizes;
}

std::vector<int64_t> RowsOf(const SelectOptions& options, int64_t size) {
  const StatusOr<Selection> selection = Selection::Create(options, size);
  EXPECT_TRUE(selection.ok()) << selection.status();
  std::vector<int64_t> rows;
  for (int64_t i = 0; selection.ok() && i < selection->size(); ++i)
    rows.push_back(selection->At(i));
  return rows;
}

TEST(Selection, SkipsThenTakesThenRepeats) {
  using Rows = std::vector<int64_t>;
  EXPECT_EQ(RowsOf({.skip = 2}, 5), (Rows{2, 3, 4}));
  EXPECT_EQ(RowsOf({.take = 2}, 5), (Rows{0, 1}));
  EXPECT_EQ(RowsOf({.take = 9}, 3), (Rows{0, 1, 2}));
  EXPECT_EQ(RowsOf({.repeat = 2}, 3), (Rows{0, 1, 2, 0, 1, 2}));
  EXPECT_EQ(RowsOf({.skip = 1, .take = 2, .repeat = 3}, 5), (Rows{1, 2, 1, 2, 1, 2}));
}

TEST(Selection, RefusesWhatLeavesNoExamples) {
  const std::map<std::string, SelectOptions> wrong = {
      {"skip: expected fewer than the 5 examples that there are, got 5", {.skip = 5}},
      {"skip: expected at least 0, got -1", {.skip = -1}},
      {"take: expected at least 1, or -1 for all examples, got 0", {.take = 0}},
      {"repeat: expected at least 1, got 0", {.repeat = 0}},
  };
  for (const auto& [message, options] : wrong)
    EXPECT_EQ(Message(Selection::Create(options, 5).status()), message);
  EXPECT_FALSE(Selection::Create({.repeat = INT64_MAX}, 5).ok());
}

TEST(Concatenation, IsOneSourceAfterTheOther) {
  PhiloxStream random(3);
  for (int round = 0; round < 50; ++round) {
    const std::vector<int64_t> sizes = RandomSizes(random, 5, 7);
    std::vector<Place> expected;
    for (size_t source = 0; source < sizes.size(); ++source) {
      for (int64_t row = 0; row < sizes[source]; ++row) expected.push_back({source, row});
    }
    EXPECT_EQ(PlacesOf(Concatenation(sizes)), expected);
  }
}

// Implements the loop of TensorFlow's interleave_dataset_op.cc, example by example.
std::vector<Place> Interleaved(const std::vector<int64_t>& sizes, size_t cycle_length,
                               int64_t block_length) {
  std::vector<Place> places;
  std::vector<std::optional<Place>> cycle(cycle_length);
  size_t slot = 0, next = 0, open = 0;
  int64_t in_block = 0;
  const auto advance = [&] {
    in_block = 0;
    slot = (slot + 1) % cycle_length;
  };
  while (next < sizes.size() || open > 0) {
    if (cycle[slot]) {
      if (cycle[slot]->row < sizes[cycle[slot]->source]) {
        places.push_back(*cycle[slot]);
        ++cycle[slot]->row;
        if (++in_block == block_length) advance();
      } else {
        cycle[slot].reset();
        --open;
        advance();
      }
    } else if (next < sizes.size()) {
      cycle[slot] = Place{next++, 0};
      ++open;
    } else {
      advance();
    }
  }
  return places;
}

TEST(Interleaving, IsTheOrderOfTensorFlow) {
  PhiloxStream random(4);
  for (int round = 0; round < 300; ++round) {
    const std::vector<int64_t> sizes = RandomSizes(random, 9, 12);
    const int64_t cycle = 1 + random.Below(6), block = 1 + random.Below(4);
    const auto layout = Interleaving::Create(sizes, cycle, block);
    ASSERT_TRUE(layout.ok()) << layout.status();
    EXPECT_EQ(PlacesOf(*layout), Interleaved(sizes, static_cast<size_t>(cycle), block))
        << testing::PrintToString(sizes) << " cycle " << cycle << " block " << block;
  }
}

TEST(Interleaving, RefusesLengthsBelowOne) {
  const std::vector<int64_t> sizes = {3};
  EXPECT_EQ(Message(Interleaving::Create(sizes, 0, 1).status()),
            "cycle_length: expected at least 1, got 0");
  EXPECT_EQ(Message(Interleaving::Create(sizes, 1, 0).status()),
            "block_length: expected at least 1, got 0");
}

std::vector<double> RandomWeights(PhiloxStream& random, size_t count) {
  std::vector<double> weights(count);
  for (double& weight : weights) weight = 0.05 + random.Uniform();
  return weights;
}

// Checks that the rows from each source are 0, 1, …, modulo its size. Returns the number of rows
// from each source.
std::vector<int64_t> CheckRows(const Mixture& mixture, const std::vector<int64_t>& sizes) {
  std::vector<int64_t> counts(sizes.size(), 0);
  for (int64_t i = 0; i < mixture.size(); ++i) {
    const Place place = mixture.At(i);
    EXPECT_EQ(mixture.Count(place.source, i), counts[place.source]);
    EXPECT_EQ(place.row, counts[place.source]++ % sizes[place.source]);
  }
  return counts;
}

TEST(Mixture, KeepsToTheWeights) {
  PhiloxStream random(5);
  for (uint64_t seed = 0; seed < 30; ++seed) {
    const size_t count = 1 + random.Below(5);
    const std::vector<double> weights = RandomWeights(random, count);
    const double all = std::accumulate(weights.begin(), weights.end(), 0.0);
    const std::vector<int64_t> sizes(count, 1000);
    const auto mixture = Mixture::Create(sizes, weights, Mixture::Stop::kFirst, seed);
    ASSERT_TRUE(mixture.ok()) << mixture.status();
    for (int64_t n = 0; n <= mixture->size(); n += 7) {
      for (size_t source = 0; source < count; ++source) {
        EXPECT_NEAR(static_cast<double>(mixture->Count(source, n)),
                    static_cast<double>(n) * weights[source] / all, static_cast<double>(count));
      }
    }
  }
}

TEST(Mixture, StopsBeforeASourceRunsOut) {
  PhiloxStream random(6);
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const std::vector<int64_t> sizes = RandomSizes(random, 4, 40);
    const auto mixture =
        Mixture::Create(sizes, RandomWeights(random, sizes.size()), Mixture::Stop::kFirst, seed);
    ASSERT_TRUE(mixture.ok()) << mixture.status();
    const std::vector<int64_t> counts = CheckRows(*mixture, sizes);
    bool ended = false;
    for (size_t i = 0; i < sizes.size(); ++i) {
      EXPECT_LE(counts[i], sizes[i]);
      ended |= mixture->Count(i, mixture->size() + 1) > sizes[i];
    }
    EXPECT_TRUE(ended) << "another example would have been possible";
  }
}

TEST(Mixture, ReadsAllSourcesCompletely) {
  PhiloxStream random(7);
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const std::vector<int64_t> sizes = RandomSizes(random, 4, 40);
    const auto mixture =
        Mixture::Create(sizes, RandomWeights(random, sizes.size()), Mixture::Stop::kAll, seed);
    ASSERT_TRUE(mixture.ok()) << mixture.status();
    const std::vector<int64_t> counts = CheckRows(*mixture, sizes);
    bool just = false;
    for (size_t i = 0; i < sizes.size(); ++i) {
      EXPECT_GE(counts[i], sizes[i]);
      just |= mixture->Count(i, mixture->size() - 1) < sizes[i];
    }
    EXPECT_TRUE(just) << "the last example was not needed";
  }
}

TEST(Mixture, NeedsNoListForManyExamples) {
  const std::vector<int64_t> sizes = {int64_t{1} << 44, int64_t{1} << 44};
  const std::vector<double> weights = {0.7, 0.3};
  const auto mixture = Mixture::Create(sizes, weights, Mixture::Stop::kFirst, 1);
  ASSERT_TRUE(mixture.ok()) << mixture.status();
  const int64_t last = mixture->size() - 1;
  EXPECT_EQ(mixture->Count(0, last) + mixture->Count(1, last), last);
  EXPECT_NEAR(static_cast<double>(mixture->Count(0, last)) / static_cast<double>(last), 0.7, 1e-9);
}

TEST(Mixture, RefusesWrongWeights) {
  const std::vector<int64_t> sizes = {5, 5};
  const auto error = [&](std::vector<double> weights) {
    return std::string(Message(Mixture::Create(sizes, weights, Mixture::Stop::kFirst, 0).status()));
  };
  EXPECT_EQ(error({1, 0}), "weight of dataset 1: expected a finite number above 0, got 0");
  EXPECT_NE(error({1, 1e-12}), "");
  EXPECT_NE(error({1e-12, 1}), "");
}

TEST(KeptRows, NumbersWhatIsKept) {
  PhiloxStream random(8);
  for (const double share : {0.0, 0.01, 0.5, 1.0}) {
    KeptRows kept(3000);
    std::vector<int64_t> expected;
    for (int64_t row = 0; row < 3000; ++row) {
      if (random.Uniform() >= share) continue;
      kept.Keep(row);
      expected.push_back(row);
    }
    kept.Index();
    std::vector<int64_t> rows;
    for (int64_t i = 0; i < kept.size(); ++i) rows.push_back(kept.At(i));
    EXPECT_EQ(rows, expected);
  }
}

}  // namespace
}  // namespace tfjob::data
