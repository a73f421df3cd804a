// Compares losses and metrics with plain loops that implement their formulas.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <span>

#include "runtime/exec/program.h"
#include "runtime/graph/gradients.h"
#include "runtime/graph/ops.h"
#include "runtime/model/metrics/metric.h"
#include "tests/numerics/test_device.h"

namespace tfjob::model {
namespace {

using graph::Builder;
using graph::Output;
using Row = std::vector<double>;
constexpr int64_t kExamples = 4, kSteps = 2, kClasses = 3;

// Applies `compute` to predictions and labels of these shapes.
std::vector<float> Compute(
    const std::vector<float>& p, const Shape& p_shape, const std::vector<float>& y,
    const Shape& y_shape, bool classes,
    const std::function<graph::Output(graph::Builder&, graph::Output, graph::Output)>& compute) {
  graph::Builder b;
  const graph::Output prediction = Placeholder(b, "p", DType::kFloat32, p_shape);
  const graph::Output labels =
      Placeholder(b, "y", classes ? DType::kInt64 : DType::kFloat32, y_shape);
  b.AddFetch("result", compute(b, prediction, labels));
  StatusOr<graph::Graph> graph = std::move(b).Finish();
  EXPECT_TRUE(graph.ok()) << graph.status();
  variables::VariableStore store(TestDevice().row_stride, TestDevice().runtime);
  auto program = exec::Compile(*graph, store, TestDevice());
  EXPECT_TRUE(program.ok()) << program.status();
  const std::vector<int64_t> numbers(y.begin(), y.end());
  const std::vector<exec::Feed> feeds = {exec::Feed::Of(std::span<const float>(p)),
                                         classes ? exec::Feed::Of(std::span<const int64_t>(numbers))
                                                 : exec::Feed::Of(std::span<const float>(y))};
  EXPECT_EQ((*program)->Run(feeds), OkStatus());
  const auto result = (*program)->Fetch<float>(0);
  return {result.begin(), result.end()};
}

double MeanOf(size_t count, const std::function<double(size_t)>& term) {
  double sum = 0;
  for (size_t i = 0; i < count; ++i) sum += term(i);
  return sum / static_cast<double>(count);
}

double Clip(double p) {
  return std::min(std::max(p, 1e-7), 1 - 1e-7);
}

struct LossCase {
  Loss loss;
  std::function<double(const Row& p, const Row& y)> reference;
};

LossCase Elements(Loss loss, double (*term)(double p, double y)) {
  return {loss, [term](const Row& p, const Row& y) {
            return MeanOf(p.size(), [&](size_t i) { return term(p[i], y[i]); });
          }};
}

std::vector<LossCase> ElementwiseCases() {
  return {
      Elements({.kind = LossKind::kMeanSquaredError},
               [](double p, double y) { return (p - y) * (p - y); }),
      Elements({.kind = LossKind::kMeanAbsoluteError},
               [](double p, double y) { return std::abs(p - y); }),
      Elements({.kind = LossKind::kMeanAbsolutePercentageError},
               [](double p, double y) { return 100 * std::abs(y - p) / std::max(y, 1e-7); }),
      Elements({.kind = LossKind::kMeanSquaredLogarithmicError},
               [](double p, double y) { return std::pow(std::log1p(p) - std::log1p(y), 2); }),
      Elements({.kind = LossKind::kHuber, .delta = 0.2},
               [](double p, double y) {
                 const double d = std::abs(p - y);
                 return d <= 0.2 ? d * d / 2 : 0.2 * d - 0.02;
               }),
      Elements({.kind = LossKind::kLogCosh},
               [](double p, double y) { return std::log(std::cosh(p - y)); }),
      Elements({.kind = LossKind::kPoisson},
               [](double p, double y) { return p - y * std::log(p + 1e-7); }),
      Elements({.kind = LossKind::kHinge},
               [](double p, double y) { return std::max(1 - y * p, 0.0); }),
      Elements({.kind = LossKind::kSquaredHinge},
               [](double p, double y) { return std::pow(std::max(1 - y * p, 0.0), 2); }),
      Elements({.kind = LossKind::kBinaryCrossentropy},
               [](double p, double y) { return -y * std::log(p) - (1 - y) * std::log(1 - p); }),
      Elements({.kind = LossKind::kBinaryCrossentropy, .from_logits = true, .label_smoothing = 0.1},
               [](double x, double y) {
                 y = 0.9 * y + 0.05;
                 return std::log1p(std::exp(x)) - x * y;
               }),
      Elements({.kind = LossKind::kBinaryFocalCrossentropy,
                .alpha = 0.3,
                .gamma = 1.5,
                .apply_class_balancing = true},
               [](double p, double y) {
                 const double q = y * p + (1 - y) * (1 - p);
                 const double entropy = -y * std::log(p) - (1 - y) * std::log(1 - p);
                 return (y * 0.3 + (1 - y) * 0.7) * std::pow(1 - q, 1.5) * entropy;
               }),
  };
}

double Dot(const Row& a, const Row& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

double SumOf(const Row& row) {
  return Dot(row, Row(row.size(), 1));
}

std::vector<LossCase> RowCases() {
  return {
      {{.kind = LossKind::kCategoricalCrossentropy, .label_smoothing = 0.3},
       [](const Row& p, const Row& y) {
         double sum = 0;
         for (size_t i = 0; i < p.size(); ++i)
           sum -= (0.7 * y[i] + 0.1) * std::log(Clip(p[i] / SumOf(p)));
         return sum;
       }},
      {{.kind = LossKind::kCategoricalFocalCrossentropy, .alpha = 0.4, .gamma = 3},
       [](const Row& p, const Row& y) {
         double sum = 0;
         for (size_t i = 0; i < p.size(); ++i) {
           const double q = Clip(p[i] / SumOf(p));
           sum -= 0.4 * std::pow(1 - q, 3) * y[i] * std::log(q);
         }
         return sum;
       }},
      {{.kind = LossKind::kKlDivergence},
       [](const Row& p, const Row& y) {
         double sum = 0;
         for (size_t i = 0; i < p.size(); ++i) sum += y[i] * std::log(y[i] / p[i]);
         return sum;
       }},
      {{.kind = LossKind::kCosineSimilarity},
       [](const Row& p, const Row& y) {
         return -Dot(p, y) / std::sqrt(Dot(p, p)) / std::sqrt(Dot(y, y));
       }},
      {{.kind = LossKind::kCategoricalHinge},
       [](const Row& p, const Row& y) {
         double wrong = -1e9;
         for (size_t i = 0; i < p.size(); ++i) wrong = std::max(wrong, (1 - y[i]) * p[i]);
         return std::max(wrong - Dot(p, y) + 1, 0.0);
       }},
  };
}

TEST(Losses, FollowTheirFormulas) {
  std::vector<float> p, y;
  for (int i = 0; i < kExamples * kSteps * kClasses; ++i) {
    p.push_back(0.5f + 0.45f * std::sin(static_cast<float>(2 * i)));
    y.push_back(0.5f + 0.4f * std::cos(static_cast<float>(3 * i)));
  }
  std::vector<LossCase> cases = ElementwiseCases();
  for (LossCase& rows : RowCases()) cases.push_back(std::move(rows));
  // Test outputs with and without an axis of steps.
  for (const Shape& shape :
       {Shape({kExamples * kSteps, kClasses}), Shape({kExamples, kSteps, kClasses})}) {
    for (const LossCase& test : cases) {
      ASSERT_EQ(CheckLoss(test.loss, shape, DType::kFloat32, shape), OkStatus());
      const auto got =
          Compute(p, shape, y, shape, false, [&](auto& b, auto prediction, auto labels) {
            const graph::Output values = LossValues(b, test.loss, prediction, labels);
            EXPECT_EQ(b.shape(values), PlacesOf(shape)) << Name(test.loss.kind);
            return values;
          });
      ASSERT_EQ(got.size(), p.size() / kClasses);
      for (size_t row = 0; row < got.size(); ++row) {
        const auto at = static_cast<std::ptrdiff_t>(row * kClasses);
        const double expected = test.reference(Row(p.begin() + at, p.begin() + at + kClasses),
                                               Row(y.begin() + at, y.begin() + at + kClasses));
        EXPECT_NEAR(got[row], expected, 1e-5 * (1 + std::abs(expected))) << Name(test.loss.kind);
      }
    }
  }
}

// A vector that is shorter than 1e-7 is treated like a vector of length 1e-7.
TEST(Losses, TheGradientOfCosineSimilarityIsFiniteForAPredictionOfZeros) {
  const auto gradient = Compute(
      {0, 0, 3, 4}, {2, 2}, {3, 4, 4, -3}, {2, 2}, false, [](auto& b, auto prediction, auto y) {
        const graph::Output values =
            LossValues(b, {.kind = LossKind::kCosineSimilarity}, prediction, y);
        return graph::Gradients(b, Sum(b, values, {}), std::span(&prediction, 1))[0];
      });
  const double expected[] = {-0.6e7, -0.8e7, -0.16, 0.12};
  for (size_t i = 0; i < 4; ++i)
    EXPECT_NEAR(gradient[i], expected[i], 1e-5 * std::abs(expected[i])) << i;
}

TEST(Losses, HingesTakeZeroAndOneForSigns) {
  const std::vector<float> p = {0.5f, -0.25f}, zeros_and_ones = {0, 1}, signs = {-1, 1};
  for (const LossKind kind : {LossKind::kHinge, LossKind::kSquaredHinge}) {
    const auto values = [&](const std::vector<float>& y) {
      return Compute(p, {2, 1}, y, {2, 1}, false, [&](auto& b, auto prediction, auto labels) {
        return LossValues(b, {.kind = kind}, prediction, labels);
      });
    };
    EXPECT_EQ(values(zeros_and_ones), values(signs)) << Name(kind);
  }
}

// The labels that are ignored need not be classes.
TEST(Losses, PlacesWithTheIgnoredClassHaveNoLossAndNoGradient) {
  const std::vector<float> p = {0.2f, 0.3f, 0.5f, 0.1f, 0.1f, 0.8f, 0.6f, 0.2f, 0.2f};
  const std::vector<float> y = {2, 255, 0};
  const Loss loss{.kind = LossKind::kSparseCategoricalCrossentropy, .ignore_class = 255};
  const auto run = [&](const auto& choose) {
    return Compute(p, Shape({3, 3}), y, Shape({3}), true, [&](Builder& b, Output x, Output labels) {
      return choose(b, x, LossValues(b, loss, x, labels), labels);
    });
  };
  const std::vector<float> values =
      run([](Builder&, Output, Output values, Output) { return values; });
  EXPECT_NEAR(values[0], -std::log(0.5), 1e-6);
  EXPECT_EQ(values[1], 0);
  EXPECT_NEAR(values[2], -std::log(0.6), 1e-6);
  const std::vector<float> gradient = run([](Builder& b, Output x, Output values, Output) {
    return graph::Gradients(b, Sum(b, values, {}), std::vector{x})[0];
  });
  for (size_t i = 0; i < 9; ++i) EXPECT_EQ(gradient[i] == 0, i / 3 == 1) << i;
  EXPECT_EQ(run([&](Builder& b, Output, Output, Output labels) {
              return Cast(b, CountedPlaces(b, loss, labels), DType::kFloat32);
            }),
            (std::vector<float>{1, 0, 1}));
}

TEST(Losses, RefuseArgumentsOutOfRange) {
  const auto error = [](const Loss& loss) {
    return std::string(Message(CheckLoss(loss, {3}, DType::kFloat32, {3})));
  };
  EXPECT_EQ(error({.kind = LossKind::kHuber, .delta = 0}),
            "loss: delta: expected a finite number above 0, got 0");
  EXPECT_EQ(error({.kind = LossKind::kCategoricalCrossentropy, .label_smoothing = 1.5}),
            "loss: label_smoothing: expected a number from 0 to 1, got 1.5");
}

// Returns the metric's value over two batches, each of which contains half of the examples.
double Measure(Metric metric, const std::vector<float>& p, const std::vector<float>& y,
               int64_t last, bool classes = false) {
  const auto examples = static_cast<int64_t>(p.size()) / last;
  std::vector<double> totals;
  for (int64_t half = 0; half < 2; ++half) {
    const auto part = [&](const std::vector<float>& values) {
      const auto size = static_cast<std::ptrdiff_t>(values.size() / 2);
      return std::vector<float>(values.begin() + half * size, values.begin() + (half + 1) * size);
    };
    const Shape shape({examples / 2, last});
    const auto sums = Compute(part(p), shape, part(y), classes ? Shape({examples / 2}) : shape,
                              classes, [&](auto& b, auto prediction, auto labels) {
                                return MetricSums(b, metric, {}, prediction, labels);
                              });
    EXPECT_EQ(static_cast<int64_t>(sums.size()), SumsOf(metric, last)) << Name(metric);
    totals.resize(sums.size());
    for (size_t i = 0; i < sums.size(); ++i) totals[i] += sums[i];
  }
  return MetricValue(metric, totals, examples);
}

TEST(Metrics, CountElements) {
  const std::vector<float> p = {0.9f, 0.2f, 0.6f, 0.4f, 0.8f, 0.1f, 0.7f, 0.3f};
  const std::vector<float> y = {1, 0, 0, 1, 1, 0, 1, 1};
  EXPECT_EQ(Measure(Metric::kTruePositives, p, y, 1), 3);
  EXPECT_EQ(Measure(Metric::kFalsePositives, p, y, 1), 1);
  EXPECT_EQ(Measure(Metric::kTrueNegatives, p, y, 1), 2);
  EXPECT_EQ(Measure(Metric::kFalseNegatives, p, y, 1), 2);
  EXPECT_DOUBLE_EQ(Measure(Metric::kPrecision, p, y, 1), 3.0 / 4);
  EXPECT_DOUBLE_EQ(Measure(Metric::kRecall, p, y, 1), 3.0 / 5);
  EXPECT_NEAR(Measure(Metric::kBinaryAccuracy, p, y, 1), 5.0 / 8, 1e-6);
  EXPECT_NEAR(Measure(Metric::kAccuracy, p, y, 1), 5.0 / 8, 1e-6) << "one output is binary";
  // There are 15 pairs of a positive and a negative example. In 13 of them, the positive example
  // scores higher.
  EXPECT_NEAR(Measure(Metric::kAuc, p, y, 1), 13.0 / 15, 1e-6);
}

// The label -1 is not a class, so the cross-entropy has no value where it is the label.
TEST(Metrics, CrossEntropiesLeaveOutTheIgnoredClass) {
  const std::vector<float> p = {0.5f, 0.3f, 0.2f, 0.1f, 0.8f, 0.1f,
                                0.2f, 0.2f, 0.6f, 0.7f, 0.2f, 0.1f};
  const std::vector<float> y = {0, -1, 2, -1};
  const Loss loss{.ignore_class = -1};
  const double mean = -(std::log(0.5) + std::log(0.6)) / 2;
  const auto measure = [&](const Metric& metric, bool weighted) {
    const auto sums = Compute(p, {4, 3}, y, {4}, true, [&](auto& b, auto prediction, auto labels) {
      const Output weights = weighted ? Const(b, Tensor::Of<float>({4}, {1, 7, 3, 7})) : Output();
      return MetricSums(b, metric, loss, prediction, labels, {}, weights);
    });
    EXPECT_EQ(static_cast<int64_t>(sums.size()),
              SumsOf(metric, 3, InheritsIgnoreClass(metric, loss), weighted));
    return MetricValue(metric, std::vector<double>(sums.begin(), sums.end()), 4);
  };
  EXPECT_NEAR(measure(LossKind::kSparseCategoricalCrossentropy, false), mean, 1e-5);
  EXPECT_NEAR(measure(Metric::kPerplexity, false), std::exp(mean), 1e-5);
  EXPECT_NEAR(measure(LossKind::kSparseCategoricalCrossentropy, true),
              -(std::log(0.5) + 3 * std::log(0.6)) / 4, 1e-5);
  EXPECT_NEAR(measure(Metric::kAccuracy, false), 2.0 / 4, 1e-6) << "ignored places are wrong";
}

TEST(Metrics, RankClasses) {
  std::vector<float> p, y, rows;
  for (int i = 0; i < 8; ++i) {
    // Class c has the rank (c + i) % 7, so 5 of the 7 ranks are among the top 5.
    for (int c = 0; c < 7; ++c) p.push_back(static_cast<float>(-((c + i) % 7)));
    y.push_back(static_cast<float>(i % 3));
    for (int c = 0; c < 7; ++c) rows.push_back(c == i % 3 ? 1.0f : 0.0f);
  }
  double best = 0, top = 0;
  for (int i = 0; i < 8; ++i) {
    const int rank = (i % 3 + i) % 7;
    best += rank == 0 ? 1 : 0;
    top += rank < 5 ? 1 : 0;
  }
  EXPECT_NEAR(Measure(Metric::kSparseCategoricalAccuracy, p, y, 7, true), best / 8, 1e-6);
  EXPECT_NEAR(Measure(Metric::kAccuracy, p, y, 7, true), best / 8, 1e-6);
  EXPECT_NEAR(Measure(Metric::kCategoricalAccuracy, p, rows, 7), best / 8, 1e-6);
  EXPECT_NEAR(Measure(Metric::kAccuracy, p, rows, 7), best / 8, 1e-6);
  EXPECT_NEAR(Measure(Metric::kSparseTopKCategoricalAccuracy, p, y, 7, true), top / 8, 1e-6);
  EXPECT_NEAR(Measure(Metric::kTopKCategoricalAccuracy, p, rows, 7), top / 8, 1e-6);
}

TEST(Metrics, OnlyTheBestScoresOfEachPlaceArePositiveWithTopK) {
  // Among the equal scores in the second row, the first one ranks higher.
  const std::vector<float> p = {0.9f, 0.2f, 0.6f, 0.4f, 0.4f, 0.4f};
  const std::vector<float> y = {1, 1, 0, 0, 1, 1};
  Metric precision = Metric::kPrecision, recall = Metric::kRecall;
  precision.top_k = recall.top_k = 1;
  EXPECT_DOUBLE_EQ(Measure(precision, p, y, 3), 1.0 / 2);
  EXPECT_DOUBLE_EQ(Measure(recall, p, y, 3), 1.0 / 4);
  precision.top_k = recall.top_k = 2;
  EXPECT_DOUBLE_EQ(Measure(precision, p, y, 3), 2.0 / 4);
  EXPECT_DOUBLE_EQ(Measure(recall, p, y, 3), 2.0 / 4);
  precision.thresholds = {0.5};
  EXPECT_DOUBLE_EQ(Measure(precision, p, y, 3), 1.0 / 2) << "0.9 and 0.6";
  precision.class_id = 0;
  EXPECT_DOUBLE_EQ(Measure(precision, p, y, 3), 1) << "0.9";
}

TEST(Metrics, CurvesHaveTheGivenThresholds) {
  const std::vector<float> p = {0.9f, 0.2f, 0.6f, 0.4f, 0.8f, 0.1f, 0.7f, 0.3f};
  const std::vector<float> y = {1, 0, 0, 1, 1, 0, 1, 1};
  Metric auc = Metric::kAuc;
  auc.thresholds = {0.5};
  // The curve has the points (1, 1), (1/3, 3/5) and (0, 0).
  EXPECT_NEAR(Measure(auc, p, y, 1), (2.0 / 3) * (4.0 / 5) + (1.0 / 3) * (3.0 / 10), 1e-6);
}

// If rows that are not finite counted as correct, a model with broken predictions would seem
// perfect.
TEST(Metrics, RowsThatAreNotFiniteAreNotAmongTheTopClasses) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> rows[] = {{-kInfinity, 1, 2}, {3, nan, 2}, {3, -kInfinity, 2}};
  for (const std::vector<float>& row : rows) {
    std::vector<float> p = {3, 1, 2};
    p.insert(p.end(), row.begin(), row.end());
    EXPECT_EQ(Measure(Metric::kSparseTopKCategoricalAccuracy, p, {0, 0}, 3, true), 0.5);
    EXPECT_EQ(Measure(Metric::kTopKCategoricalAccuracy, p, {1, 0, 0, 1, 0, 0}, 3), 0.5);
  }
}

TEST(Metrics, LabelsThatAreNoClassesAreNotAmongTheTopClasses) {
  const std::vector<float> p = {-3, -1, -2, -3, -1, -2};
  EXPECT_EQ(Measure(Metric::kSparseTopKCategoricalAccuracy, p, {0, 255}, 3, true), 0.5);
}

TEST(Metrics, AreFunctionsOfMeans) {
  const std::vector<float> p = {0.2f, 0.8f, 0.5f, 0.5f, 0.9f, 0.1f, 0.4f, 0.6f};
  const std::vector<float> y = {0, 1, 1, 0, 1, 0, 0, 1};
  double squares = 0, entropy = 0, variance = 0, residual[2] = {}, scatter[2] = {};
  for (size_t i = 0; i < p.size(); ++i) {
    squares += std::pow(p[i] - y[i], 2) / 8;
    entropy -= y[i] * std::log(p[i]) / 4;
    residual[i % 2] += std::pow(p[i] - y[i], 2);
    scatter[i % 2] += std::pow(y[i] - 0.5, 2);
  }
  for (size_t i = 0; i < 2; ++i) variance += (1 - residual[i] / scatter[i]) / 2;
  EXPECT_NEAR(Measure(Metric::kRootMeanSquaredError, p, y, 2), std::sqrt(squares), 1e-6);
  EXPECT_NEAR(Measure(Metric::kPerplexity, p, y, 2), std::exp(entropy), 1e-5);
  EXPECT_NEAR(Measure(Metric::kR2Score, p, y, 2), variance, 1e-5);
  EXPECT_GT(Measure(LossKind::kCosineSimilarity, p, y, 2), 0.5) << "not the negative of the loss";
  EXPECT_EQ(MetricValue(Metric::kPerplexity, {}, 0), 0) << "no examples";
}

}  // namespace
}  // namespace tfjob::model
