#include "runtime/model/layers/group_normalization.h"

#include "runtime/graph/ops.h"
#include "runtime/model/layer/axes.h"

namespace tfjob::model::layers {

using graph::Builder;
using graph::Output;

void GroupNormalization::Arguments(ArgumentVisitor& visitor) {
  visitor.Integer("groups", groups, {.least = -1, .expected = "a number of groups, or -1"});
  visitor.Axis("axis", axis);
  visitor.Number("epsilon", epsilon, {.least = 0, .expected = "a number of at least 0"});
  visitor.Flag("center", center);
  visitor.Flag("scale", scale);
  visitor.Initializer("beta_initializer", beta_initializer);
  visitor.Initializer("gamma_initializer", gamma_initializer);
  visitor.Rules("beta", beta_rules);
  visitor.Rules("gamma", gamma_rules);
}

StatusOr<Shape> GroupNormalization::OutputShape(const Shape& in) const {
  const int found = ExampleAxis(axis, in);
  if (found < 0) return NoSuchAxis(axis, in);
  if (groups == 0 || in.dim(found) < 1 || (groups > 0 && in.dim(found) % groups != 0)) {
    return InvalidArgument("expected groups that divide the size ", in.dim(found), " of axis ",
                           axis, ", got ", groups);
  }
  return in;
}

std::vector<VariableSpec> GroupNormalization::Variables(const Shape& in) const {
  const Shape shape({in.dim(ExampleAxis(axis, in))});
  std::vector<VariableSpec> variables;
  if (scale)
    variables.push_back(
        {.name = "gamma", .shape = shape, .initializer = gamma_initializer, .rules = gamma_rules});
  if (center)
    variables.push_back(
        {.name = "beta", .shape = shape, .initializer = beta_initializer, .rules = beta_rules});
  return variables;
}

Output GroupNormalization::Apply(const LayerCall& call) const {
  Builder& b = call.b;
  const Shape shape = b.shape(call.x());
  const auto split = static_cast<size_t>(ExampleAxis(axis, call.ExampleShape()) + 1);
  // Split the axis into two axes: the groups, and the elements of a group.
  std::vector<int64_t> dims = shape.dims(), along(dims.size() + 1, 1), others;
  const int64_t count = groups < 0 ? dims[split] : groups;
  along[split] = count;
  along[split + 1] = dims[split] / count;
  dims[split] = along[split + 1];
  dims.insert(dims.begin() + static_cast<int64_t>(split), count);
  for (size_t d = 1; d < dims.size(); ++d)
    if (d != split) others.push_back(static_cast<int64_t>(d));
  const auto variable = [&](size_t i) {
    return graph::Reshape(b, call.variables[i], Shape(along));
  };

  const Output x = graph::Reshape(b, call.x(), Shape(dims));
  const Output centered = Sub(b, x, Mean(b, x, others, true));
  const Output variance = Mean(b, Square(b, centered), others, true);
  Output factor = Rsqrt(b, graph::Add(b, variance, Scalar(b, b.dtype(x), epsilon)));
  if (scale) factor = Mul(b, factor, variable(0));
  Output y = Mul(b, centered, factor);
  if (center) y = graph::Add(b, y, variable(scale ? 1 : 0));
  return graph::Reshape(b, y, shape);
}

}  // namespace tfjob::model::layers
