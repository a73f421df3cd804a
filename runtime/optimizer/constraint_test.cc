#include "runtime/optimizer/constraint.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace tfjob::optimizer {
namespace {

using Kind = Constraint::Kind;

std::vector<float> Projected(const Constraint& constraint, const Shape& shape,
                             std::vector<float> values) {
  EXPECT_EQ(Validate(constraint, shape), OkStatus());
  Projection projection(constraint, shape);
  projection.Run(std::span<float>(values));
  return values;
}

// The expected values were computed with keras.constraints of Keras 3.15, in float64.
TEST(Constraint, ValuesAreKeras) {
  const std::vector<float> w = {3, -1, 0.5F, 4, 2, -0.25F};
  const struct {
    Constraint constraint;
    std::vector<float> expected;
  } cases[] = {
      {{.kind = Kind::kNonNeg}, {3, 0, 0.5F, 4, 2, 0}},
      {{.kind = Kind::kUnitNorm, .axes = {0}},
       {0.59999999F, -0.44721358F, 0.89442703F, 0.79999998F, 0.89442715F, -0.44721351F}},
      {{.kind = Kind::kMaxNorm, .max_value = 2, .axes = {0}},
       {1.2F, -0.89442715F, 0.49999991F, 1.6F, 1.7888543F, -0.24999996F}},
      {{.kind = Kind::kMinMaxNorm, .min_value = 3.5, .max_value = 4, .rate = 0.5, .axes = {-1}},
       {3.1398244F, -1.0466081F, 0.5233041F, 3.7860657F, 1.8930329F, -0.2366291F}},
      {{.kind = Kind::kUnitNorm, .axes = {0, 1}},
       {0.5448919F, -0.1816306F, 0.0908153F, 0.7265226F, 0.3632613F, -0.0454077F}},
  };
  for (const auto& [constraint, expected] : cases) {
    const std::vector<float> got = Projected(constraint, {2, 3}, w);
    for (size_t i = 0; i < got.size(); ++i)
      EXPECT_NEAR(got[i], expected[i], 1e-6) << Name(constraint.kind) << " " << i;
  }
}

// Compares the norms of a filter, one per output channel, with norms that are computed by a plain
// loop.
TEST(Constraint, NormsMayBeOverAnyAxesAndRowsMayHavePadding) {
  const Shape shape({2, 3, 2, 4});
  for (const std::vector<int64_t>& axes :
       {std::vector<int64_t>{0, 1, 2}, {1}, {3}, {0, 3}, {2, 1}, {0, 1, 2, 3}}) {
    constexpr size_t kRow = 7;  // four elements and three of padding
    std::vector<double> values(12 * kRow, -7), expected;
    for (size_t i = 0; i < 48; ++i)
      values[i / 4 * kRow + i % 4] = std::sin(static_cast<double>(i) * 1.7 + 1);
    const std::vector<double> before = values;
    const auto at = [&](size_t i) { return before[i / 4 * kRow + i % 4]; };
    const auto index = [](size_t i) {
      return std::vector<size_t>{i / 24, i / 8 % 3, i / 4 % 2, i % 4};
    };
    const Constraint constraint{.kind = Kind::kUnitNorm, .axes = axes};
    Projection(constraint, shape).Run(values.data(), kRow);
    for (size_t i = 0; i < 48; ++i) {
      double squares = 0;
      for (size_t j = 0; j < 48; ++j) {
        bool same = true;
        for (size_t d = 0; d < 4; ++d) {
          const bool reduced = std::ranges::find(axes, static_cast<int64_t>(d)) != axes.end();
          same &= reduced || index(i)[d] == index(j)[d];
        }
        if (same) squares += at(j) * at(j);
      }
      EXPECT_NEAR(values[i / 4 * kRow + i % 4], at(i) / (1e-7 + std::sqrt(squares)), 1e-12);
    }
    EXPECT_EQ(values[5], -7);
  }
}

TEST(Constraint, RefusesBoundsAndAxesThatDoNotFit) {
  const auto error = [](const Constraint& constraint) {
    return std::string(Message(Validate(constraint, {2, 3})));
  };
  EXPECT_EQ(error({.kind = Kind::kMaxNorm, .axes = {2}}),
            "expected different axes of [2,3], got 2");
  EXPECT_EQ(error({.kind = Kind::kUnitNorm, .axes = {0, -2}}),
            "expected different axes of [2,3], got -2");
  EXPECT_EQ(error({.kind = Kind::kMaxNorm, .max_value = -1, .axes = {0}}),
            "max_value: expected a finite number of at least 0, got -1");
  EXPECT_EQ(error({.kind = Kind::kMinMaxNorm, .min_value = 3, .max_value = 2, .axes = {0}}),
            "expected a min_value of at most max_value, 2, got 3");
}

TEST(Constraint, JsonKeepsEveryMember) {
  const Constraint constraint{
      .kind = Kind::kMinMaxNorm, .min_value = 0.5, .max_value = 4, .rate = 0.25, .axes = {0, -1}};
  const Json json = ToJson(constraint);
  EXPECT_EQ(*ParseConstraint(JsonField(json)), constraint);
  EXPECT_TRUE(SpansRows(constraint, {2, 3}));
  EXPECT_FALSE(SpansRows({.kind = Kind::kNonNeg}, {2, 3}));
}

}  // namespace
}  // namespace tfjob::optimizer
