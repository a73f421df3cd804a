#include "runtime/model/layers/noise.h"

#include <cmath>

#include "runtime/graph/ops.h"

namespace tfjob::model::layers {
namespace {

constexpr NumberRule kRate = {
    .least = 0, .most = 1, .below_most = true, .expected = "a number in [0, 1)", .required = true};

graph::Output Noise(const LayerCall& call, double mean, double stddev) {
  const TensorType& type = call.b.type(call.x());
  return graph::RandomNormal(call.b, call.step, call.seed, type.dtype, type.shape, mean, stddev,
                             call.replica);
}

}  // namespace

void Dropout::Arguments(ArgumentVisitor& visitor) {
  visitor.Number("rate", rate, kRate);
  visitor.Optional("seed", seed);
  visitor.Only("noise_shape", "null");
}
graph::Output Dropout::Apply(const LayerCall& call) const {
  if (!call.training || rate == 0) return call.x();
  return graph::Dropout(call.b, call.x(), call.step, call.seed, rate, call.replica);
}

void GaussianNoise::Arguments(ArgumentVisitor& visitor) {
  visitor.Number("stddev", stddev,
                 {.least = 0, .expected = "a number of at least 0", .required = true});
  visitor.Optional("seed", seed);
}
graph::Output GaussianNoise::Apply(const LayerCall& call) const {
  if (!call.training || stddev == 0) return call.x();
  return graph::Add(call.b, call.x(), Noise(call, 0, stddev));
}

void GaussianDropout::Arguments(ArgumentVisitor& visitor) {
  visitor.Number("rate", rate, kRate);
  visitor.Optional("seed", seed);
}
graph::Output GaussianDropout::Apply(const LayerCall& call) const {
  if (!call.training || rate == 0) return call.x();
  return graph::Mul(call.b, call.x(), Noise(call, 1, std::sqrt(rate / (1 - rate))));
}

}  // namespace tfjob::model::layers
