// Tests the masking of tokens.
#include "runtime/data/operators/mask_tokens.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <set>

#include "runtime/data/pipeline.h"
#include "runtime/data/table_source.h"

namespace tfjob::data {
namespace {

constexpr int64_t kRows = 400, kPlaces = 20, kMask = 4, kIds = 50;

// Returns texts of ids from 5 on. The first position has the special token 2, and the last position
// the padding 0.
Tensor Texts() {
  Tensor tokens(DType::kInt64, {kRows, kPlaces});
  const auto ids = tokens.data<int64_t>();
  for (size_t i = 0; i < ids.size(); ++i) {
    const size_t place = i % kPlaces;
    ids[i] = place == 0 ? 2 : place + 1 == kPlaces ? 0 : 5 + static_cast<int64_t>(i % 40);
  }
  return tokens;
}

SourcePtr Source(bool with_weights) {
  Dataset dataset{.arrays = {{"tokens", "a.npz", Texts()}, {"labels", "a.npz", Texts()}}};
  Tensor weights(DType::kFloat32, {kRows, kPlaces});
  std::ranges::fill(weights.data<float>(), 0.5f);
  if (with_weights) dataset.arrays.push_back({"weights", "a.npz", weights});
  return TableSource(std::make_shared<const Dataset>(std::move(dataset)));
}

MaskTokensOptions Options() {
  return {.tokens = "tokens",
          .weights = "weights",
          .mask_token = kMask,
          .vocabulary_size = kIds,
          .special_tokens = {0, 1, 2, 3},
          .seed = 9};
}

SourcePtr Masked(bool with_weights = false) {
  StatusOr<SourcePtr> masked = MaskTokens(Source(with_weights), Options());
  EXPECT_TRUE(masked.ok()) << masked.status();
  return *std::move(masked);
}

struct Values {
  std::vector<int64_t> tokens, labels;
  std::vector<float> weights;
  bool operator==(const Values&) const = default;
};

std::vector<Column> Columns(DType tokens = DType::kInt64) {
  return {{.name = "x", .array = "tokens", .dtype = tokens, .shape = {kPlaces}},
          {.name = "w", .array = "weights", .shape = {kPlaces}},
          {.name = "y", .array = "labels", .dtype = DType::kInt64, .shape = {kPlaces}}};
}

// Reads examples in one epoch.
Values Read(RowReader& reader, int64_t epoch, const std::vector<int64_t>& rows) {
  const auto count = static_cast<int64_t>(rows.size());
  std::vector<NamedTensor> tensors = {{"x", Tensor(DType::kInt64, {count, kPlaces})},
                                      {"w", Tensor(DType::kFloat32, {count, kPlaces})},
                                      {"y", Tensor(DType::kInt64, {count, kPlaces})}};
  reader.BeginEpoch(epoch);
  EXPECT_EQ(reader.Read(rows, tensors), OkStatus());
  const auto ids = [&](size_t i) {
    const auto values = std::as_const(tensors[i].value).data<int64_t>();
    return std::vector<int64_t>(values.begin(), values.end());
  };
  const auto weights = std::as_const(tensors[1].value).data<float>();
  return {ids(0), ids(2), {weights.begin(), weights.end()}};
}

std::vector<int64_t> AllRows() {
  std::vector<int64_t> rows(kRows);
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

TEST(MaskTokens, ReplacesAShareOfTheTokensAsBertDoes) {
  const SourcePtr source = Masked();
  auto reader = *source->Open(Columns());
  const Values values = Read(*reader, 0, AllRows());
  const Tensor texts = Texts();
  const auto tokens = texts.data<int64_t>();
  int64_t usual = 0, masked = 0, random = 0, same = 0;
  std::set<int64_t> drawn;
  for (size_t i = 0; i < tokens.size(); ++i) {
    EXPECT_EQ(values.labels[i], tokens[i]);
    if (tokens[i] < 5) {
      EXPECT_EQ(values.tokens[i], tokens[i]) << "a special token";
      EXPECT_EQ(values.weights[i], 0);
      continue;
    }
    ++usual;
    if (values.weights[i] == 0) {
      EXPECT_EQ(values.tokens[i], tokens[i]);
      continue;
    }
    EXPECT_EQ(values.weights[i], 1);
    const int64_t id = values.tokens[i];
    ++(id == kMask ? masked : id == tokens[i] ? same : random);
    if (id != kMask && id != tokens[i]) drawn.insert(id);
  }
  const auto share = [](int64_t part, int64_t of) {
    return static_cast<double>(part) / static_cast<double>(of);
  };
  const int64_t predicted = masked + random + same;
  EXPECT_NEAR(share(predicted, usual), 0.15, 0.02);
  EXPECT_NEAR(share(masked, predicted), 0.8, 0.05);
  EXPECT_NEAR(share(random, predicted), 0.1, 0.04);
  EXPECT_NEAR(share(same, predicted), 0.1, 0.04);
  EXPECT_GE(*drawn.begin(), 5) << "no special token is drawn";
  EXPECT_LT(*drawn.rbegin(), kIds);
  EXPECT_GT(drawn.size(), 20u);
}

TEST(MaskTokens, DependOnTheEpochAndTheExampleOnly) {
  const SourcePtr source = Masked();
  auto reader = *source->Open(Columns()), other = *source->Open(Columns());
  const Values first = Read(*reader, 0, {7, 3}), again = Read(*other, 0, {3, 5, 7});
  const auto row = [](const Values& values, size_t i) {
    const auto begin = values.tokens.begin() + static_cast<std::ptrdiff_t>(i * kPlaces);
    return std::vector<int64_t>(begin, begin + kPlaces);
  };
  EXPECT_EQ(row(first, 0), row(again, 2));
  EXPECT_EQ(row(first, 1), row(again, 0));
  EXPECT_NE(Read(*reader, 1, AllRows()), Read(*reader, 0, AllRows()));
  EXPECT_EQ(Read(*reader, 1, AllRows()), Read(*other, 1, AllRows()));
}

TEST(MaskTokens, KeepsTheWeightsOfTokensThatArePredicted) {
  const SourcePtr source = Masked(/*with_weights=*/true);
  auto reader = *source->Open(Columns());
  const Values values = Read(*reader, 0, AllRows());
  EXPECT_EQ(std::ranges::count(values.weights, 0.5f) + std::ranges::count(values.weights, 0.0f),
            kRows * kPlaces);
  EXPECT_GT(std::ranges::count(values.weights, 0.5f), 0);
}

TEST(MaskTokens, PipelinesMaskEveryEpochAnew) {
  PipelineOptions options{.batch_size = kRows, .epochs = 2, .shuffle = false, .columns = Columns()};
  const auto pipeline = Pipeline::Create(Masked(), options);
  ASSERT_TRUE(pipeline.ok()) << pipeline.status();
  const auto next = [&] {
    const auto ids = (*pipeline)->Next()->Find("x")->data<int64_t>();
    return std::vector<int64_t>(ids.begin(), ids.end());
  };
  const std::vector<int64_t> first = next(), second = next();
  EXPECT_NE(first, second);
  const SourcePtr source = Masked();
  auto reader = *source->Open(Columns());
  EXPECT_EQ(second, Read(*reader, 1, AllRows()).tokens);
}

TEST(MaskTokens, WrongFieldsAndIdsAreNamed) {
  const auto error = [](const MaskTokensOptions& options) {
    return std::string(MaskTokens(Source(true), options).status().message());
  };
  MaskTokensOptions options = Options();
  options.tokens = "words";
  EXPECT_EQ(error(options), "the examples have no field words");
  options = Options();
  options.vocabulary_size = 5;
  EXPECT_THAT(error(options), ::testing::HasSubstr("got 5 ids, of which 5 are special"));
  EXPECT_THAT(std::string(Masked()->Open(Columns(DType::kUInt8)).status().message()),
              ::testing::HasSubstr("expected tokens of type int64, int32 or float32"));
  EXPECT_NE(Masked()->fingerprint(), Source(false)->fingerprint());
}

}  // namespace
}  // namespace tfjob::data
