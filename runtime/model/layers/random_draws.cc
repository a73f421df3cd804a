#include "runtime/model/layers/random_draws.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "absl/strings/str_join.h"
#include "runtime/graph/ops.h"

namespace tfjob::model::layers {

using graph::Builder;
using graph::Output;

Status ExpectImages(const Shape& in) {
  if (in.rank() == 3) return OkStatus();
  return InvalidArgument("expected examples of shape [height,width,channels], got ", in.ToString());
}

void RandomArguments(ArgumentVisitor& visitor, std::optional<int64_t>& seed) {
  visitor.Optional("seed", seed);
  visitor.Only("data_format", "\"channels_last\"");
}

StatusOr<Bounds> BoundsOf(std::string_view name, const std::vector<double>& factor, double least) {
  const auto fits = [least](double bound) { return bound >= least && bound <= 1; };
  if (factor.empty() || factor.size() > 2 || !std::ranges::all_of(factor, fits)) {
    return InvalidArgument(name, ": expected a number, or two, from ", least, " to 1, got [",
                           absl::StrJoin(factor, ", "), "]");
  }
  if (factor.size() == 2)
    return std::array{std::min(factor[0], factor[1]), std::max(factor[0], factor[1])};
  return std::array{std::max(-std::fabs(factor[0]), least), std::fabs(factor[0])};
}

// Applies the distribution function of the normal distribution to normally distributed numbers.
// RandomUniform cannot be used, because only RandomNormal depends on the replica.
Output UniformPerImage(const LayerCall& call, const Bounds& bounds) {
  Builder& b = call.b;
  const auto [low, high] = bounds;
  const Shape shape = {call.batch_size(), 1, 1, 1};
  const Output normal =
      RandomNormal(b, call.step, call.seed, DType::kFloat32, shape, 0, 1, call.replica);
  const auto number = [&](double value) { return Scalar(b, DType::kFloat32, value); };
  const Output twice =
      graph::Add(b, Erf(b, Mul(b, normal, number(1 / std::numbers::sqrt2))), number(1));
  const Output uniform = graph::Add(b, Mul(b, twice, number((high - low) / 2)), number(low));
  return Cast(b, uniform, b.dtype(call.x()));
}

}  // namespace tfjob::model::layers
