// Compares the losses of whole batches, of pairs of examples and of sequences with plain loops, and
// their gradients with differences.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "runtime/exec/program.h"
#include "runtime/graph/gradients.h"
#include "runtime/graph/ops.h"
#include "runtime/model/losses/loss.h"
#include "tests/numerics/test_device.h"

namespace tfjob::model {
namespace {

using graph::Builder;
using graph::Output;

template <typename T>
Tensor TensorOf(DType dtype, Shape shape, const std::vector<T>& values) {
  Tensor tensor(dtype, std::move(shape));
  std::ranges::copy(values, tensor.data<T>().begin());
  return tensor;
}
Tensor Floats(Shape shape, const std::vector<float>& values) {
  return TensorOf(DType::kFloat32, std::move(shape), values);
}
Tensor Integers(Shape shape, const std::vector<int64_t>& values) {
  return TensorOf(DType::kInt64, std::move(shape), values);
}

// The value of each place, and the gradient of their sum.
struct Results {
  std::vector<float> values, gradient;
};

Results Computed(const Loss& loss, const std::vector<float>& p, const Shape& p_shape,
                 const Tensor& labels) {
  Builder b;
  const Output prediction = Placeholder(b, "p", DType::kFloat32, p_shape);
  const Output y = Const(b, labels);
  const Output values = LossValues(b, loss, prediction, y);
  b.AddFetch("values", values);
  b.AddFetch("gradient", graph::Gradients(b, Sum(b, values, {}), std::vector{prediction})[0]);
  StatusOr<graph::Graph> graph = std::move(b).Finish();
  EXPECT_TRUE(graph.ok()) << graph.status();
  variables::VariableStore store(TestDevice().row_stride, TestDevice().runtime);
  auto program = exec::Compile(*graph, store, TestDevice());
  EXPECT_TRUE(program.ok()) << program.status();
  EXPECT_EQ((*program)->Run(std::vector{exec::Feed::Of(std::span<const float>(p))}), OkStatus());
  const auto own = (*program)->Fetch<float>(0), gradient = (*program)->Fetch<float>(1);
  return {{own.begin(), own.end()}, {gradient.begin(), gradient.end()}};
}

std::vector<float> Waves(int64_t count, double frequency) {
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i)
    values.push_back(static_cast<float>(0.5 + 0.45 * std::sin(frequency * static_cast<double>(i))));
  return values;
}

// Expects that the values are those of `reference`, a function of all predictions, and that the
// gradient of their sum agrees with its differences.
void ExpectFollows(
    const Loss& loss, const std::vector<float>& p, const Shape& shape, const Tensor& labels,
    const std::function<std::vector<double>(const std::vector<double>&)>& reference) {
  const Results got = Computed(loss, p, shape, labels);
  std::vector<double> at(p.begin(), p.end());
  const std::vector<double> expected = reference(at);
  ASSERT_EQ(got.values.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(got.values[i], expected[i], 1e-5 * (1 + std::abs(expected[i]))) << i;
  const auto total = [&] {
    double sum = 0;
    for (const double value : reference(at)) sum += value;
    return sum;
  };
  for (size_t i = 0; i < p.size(); ++i) {
    constexpr double kStep = 1e-5;
    at[i] += kStep;
    const double above = total();
    at[i] -= 2 * kStep;
    const double slope = (above - total()) / (2 * kStep);
    at[i] += kStep;
    EXPECT_NEAR(got.gradient[i], slope, 1e-4 * (1 + std::abs(slope))) << i;
  }
}

// Returns 1 - 2 Σ y p / (Σ y + Σ p) over the elements [begin, end).
double DiceOf(const std::vector<double>& p, const std::vector<float>& y, size_t begin, size_t end) {
  double both = 0, sizes = 1e-7;
  for (size_t i = begin; i < end; ++i) {
    both += p[i] * y[i];
    sizes += p[i] + y[i];
  }
  return 1 - 2 * both / sizes;
}

TEST(BatchLosses, DiceIsOfTheBatchOrOfEachExample) {
  const Shape shape{3, 2, 2};
  const std::vector<float> p = Waves(12, 2), y = Waves(12, 3);
  const Tensor labels = Floats(shape, y);
  ExpectFollows({.kind = LossKind::kDice}, p, shape, labels,
                [&](const auto& at) { return std::vector<double>(3, DiceOf(at, y, 0, 12)); });
  ExpectFollows({.kind = LossKind::kDice, .axes = {1, -1}}, p, shape, labels, [&](const auto& at) {
    return std::vector<double>{DiceOf(at, y, 0, 4), DiceOf(at, y, 4, 8), DiceOf(at, y, 8, 12)};
  });
}

TEST(BatchLosses, TverskyWeighsWhatIsMissingAndWhatIsTooMuch) {
  const Shape shape{2, 3};
  const std::vector<float> p = Waves(6, 2), y = Waves(6, 3);
  const Loss loss{.kind = LossKind::kTversky, .alpha = 0.3, .beta = 0.9};
  ExpectFollows(loss, p, shape, Floats(shape, y), [&](const auto& at) {
    double both = 0, missing = 0, wrong = 0;
    for (size_t i = 0; i < at.size(); ++i) {
      both += at[i] * y[i];
      missing += (1 - at[i]) * y[i];
      wrong += at[i] * (1 - y[i]);
    }
    return std::vector<double>(2, 1 - both / (both + 0.3 * missing + 0.9 * wrong + 1e-7));
  });
}

// Returns log Σ exp(term(j)) over the five examples j that `counts` accepts.
double LogSumExpOf(const std::function<bool(size_t)>& counts,
                   const std::function<double(size_t)>& term) {
  double sum = 0;
  for (size_t j = 0; j < 5; ++j) sum += counts(j) ? std::exp(term(j)) : 0;
  return std::log(sum);
}

TEST(BatchLosses, CircleComparesPairs) {
  const std::vector<int64_t> groups = {4, -1, 4, 4, -1};
  const Loss loss{.kind = LossKind::kCircle, .gamma = 3, .margin = 0.3};
  ExpectFollows(loss, Waves(10, 2), {5, 2}, Integers({5}, groups), [&](const auto& at) {
    std::vector<double> losses;
    for (size_t i = 0; i < 5; ++i) {
      const auto distance = [&](size_t j) {
        return std::max(1 - at[2 * i] * at[2 * j] - at[2 * i + 1] * at[2 * j + 1], 0.0);
      };
      const double near =
          LogSumExpOf([&](size_t j) { return j != i && groups[i] == groups[j]; },
                      [&](size_t j) { return 3 * (distance(j) + 0.3) * (distance(j) - 0.3); });
      const double far =
          LogSumExpOf([&](size_t j) { return groups[i] != groups[j]; },
                      [&](size_t j) { return 3 * (1.3 - distance(j)) * (0.7 - distance(j)); });
      losses.push_back(std::log1p(std::exp(near + far)));
    }
    return losses;
  });
}

// Nothing is nearer to the only example of a group, and nothing farther away if there is one group.
TEST(BatchLosses, CircleIsZeroWithoutPairs) {
  const Loss loss{.kind = LossKind::kCircle};
  for (const std::vector<int64_t>& groups : {std::vector<int64_t>{1, 2, 3}, {7, 7, 7}}) {
    const Results got = Computed(loss, Waves(6, 2), {3, 2}, Integers({3}, groups));
    EXPECT_EQ(got.values, std::vector<float>(3, 0.0f));
    EXPECT_EQ(got.gradient, std::vector<float>(6, 0.0f));
  }
}

// Returns the labels for which a sequence of classes stands.
std::vector<int64_t> Collapsed(const std::vector<int64_t>& path) {
  std::vector<int64_t> labels;
  for (size_t t = 0; t < path.size(); ++t) {
    if (path[t] != 0 && (t == 0 || path[t] != path[t - 1])) labels.push_back(path[t]);
  }
  return labels;
}

// Sums the probabilities of all sequences of classes that stand for the labels.
double CtcOf(const std::vector<double>& logits, size_t steps, size_t classes,
             const std::vector<int64_t>& labels) {
  double total = 0;
  std::vector<int64_t> path(steps, 0);
  for (bool more = true; more;) {
    double product = Collapsed(path) == labels ? 1 : 0;
    for (size_t t = 0; t < steps && product > 0; ++t) {
      double sum = 0;
      for (size_t c = 0; c < classes; ++c) sum += std::exp(logits[t * classes + c]);
      product *= std::exp(logits[t * classes + static_cast<size_t>(path[t])]) / sum;
    }
    total += product;
    more = false;
    for (size_t t = 0; t < steps && !more; ++t) {
      path[t] = (path[t] + 1) % static_cast<int64_t>(classes);
      more = path[t] != 0;
    }
  }
  return -std::log(total);
}

TEST(BatchLosses, CtcSumsOverAllSequencesThatStandForTheLabels) {
  constexpr size_t kSteps = 5, kClasses = 3;
  const std::vector<std::vector<int64_t>> labels = {{1, 2, 1}, {2, 2}, {1}, {}, {2, 1}};
  Tensor padded(DType::kInt64, {5, 3});
  for (size_t i = 0; i < labels.size(); ++i)
    std::ranges::copy(labels[i], padded.data<int64_t>().begin() + static_cast<int64_t>(3 * i));
  const std::vector<float> p = Waves(5 * kSteps * kClasses, 2);
  ExpectFollows({.kind = LossKind::kCtc}, p, {5, kSteps, kClasses}, padded, [&](const auto& at) {
    std::vector<double> losses;
    for (size_t i = 0; i < labels.size(); ++i) {
      const auto begin = at.begin() + static_cast<std::ptrdiff_t>(i * kSteps * kClasses);
      losses.push_back(CtcOf({begin, begin + kSteps * kClasses}, kSteps, kClasses, labels[i]));
    }
    return losses;
  });
}

// Two equal labels need three steps.
TEST(BatchLosses, CtcOfLabelsThatAreTooLongIsInfinite) {
  const Results got =
      Computed({.kind = LossKind::kCtc}, Waves(12, 2), {2, 2, 3}, Integers({2, 2}, {1, 1, 1, 2}));
  EXPECT_EQ(got.values[0], std::numeric_limits<float>::infinity());
  EXPECT_LT(got.values[1], 10);
  for (size_t i = 0; i < 6; ++i) EXPECT_EQ(got.gradient[i], 0) << i;
}

TEST(BatchLosses, ErrorsNameWhatIsExpected) {
  const auto error = [](const Loss& loss, const Shape& output, DType dtype, const Shape& labels) {
    return std::string(Message(CheckLoss(loss, output, dtype, labels)));
  };
  EXPECT_EQ(error({.kind = LossKind::kCtc}, {4}, DType::kInt64, {2}),
            "ctc expects the logits of a sequence, shape [steps,classes], but the model outputs "
            "shape [4]");
  EXPECT_EQ(error({.kind = LossKind::kCtc}, {5, 4}, DType::kFloat32, {5, 4}),
            "ctc expects a list of class numbers per example as labels, int64 of shape [labels], "
            "got float32 of shape [5,4]; set data.labels to class");
  EXPECT_EQ(error({.kind = LossKind::kCircle}, {5, 4}, DType::kInt64, {5}),
            "circle expects one vector per example, but the model outputs shape [5,4]");
  EXPECT_EQ(
      error({.kind = LossKind::kCircle}, {4}, DType::kInt64, {5}),
      "circle expects one integer per example as label, int64 of shape [], got int64 of shape "
      "[5]; set data.labels to class");
  EXPECT_EQ(error({.kind = LossKind::kDice, .axes = {1, -2}}, {5, 4}, DType::kFloat32, {5, 4}),
            "loss: axis: expected different axes from -3 to 2, got -2");
  EXPECT_EQ(error({.kind = LossKind::kTversky, .beta = -1}, {4}, DType::kFloat32, {4}),
            "loss: beta: expected a finite number of at least 0, got -1");
}

}  // namespace
}  // namespace tfjob::model
