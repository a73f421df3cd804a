#include "runtime/model/updates.h"

#include <string>
#include <utility>

#include "runtime/graph/ops.h"
#include "runtime/model/clip_gradients.h"
#include "runtime/optimizer/constraint.h"
#include "runtime/optimizer/part.h"

namespace tfjob::model {
namespace {

using graph::Builder;
using graph::Output;
using optimizer::Part;

void Apply(Builder& b, const optimizer::Optimizer& optimizer, const VariableGradient& gradient,
           Output step, Part part) {
  const VariableSpec& variable = *gradient.variable;
  const std::string& name = gradient.name.empty() ? variable.name : gradient.name;
  Attributes attributes = ToAttributes(ForVariable(optimizer, name));
  if (part != Part::kWhole) attributes.Set(optimizer::kPart, static_cast<int64_t>(part));
  if (part != Part::kAccumulate) SetConstraint(variable.rules.constraint, attributes);
  if (!gradient.indices.valid())
    return ApplyOptimizer(b, variable.name, gradient.value, step, std::move(attributes));
  ApplyOptimizerRows(b, variable.name, gradient.indices, gradient.value, step,
                     std::move(attributes));
}

void Clip(Builder& b, const optimizer::Clipping& clipping,
          std::vector<VariableGradient>& gradients) {
  std::vector<Output> values;
  for (const VariableGradient& gradient : gradients) values.push_back(gradient.value);
  // If a gradient is given by rows, clipping these rows suffices: all other rows are zero, and
  // clipping does not change zeros.
  values = ClipGradients(b, clipping, std::move(values));
  for (size_t i = 0; i < gradients.size(); ++i) gradients[i].value = values[i];
}

// Returns the mean of the gradients since the last update. In a step that does not update the
// variables, the result is incomplete and not used.
Output MeanGradient(Builder& b, const optimizer::Optimizer& optimizer,
                    const VariableSpec& variable) {
  const std::string accumulator =
      StrCat(variable.name, "/", optimizer::Slots(optimizer).back().suffix);
  const Output sum = ReadVariable(b, accumulator, variable.dtype, variable.shape);
  const auto steps = static_cast<double>(optimizer.gradient_accumulation_steps);
  return Mul(b, sum, Scalar(b, variable.dtype, 1 / steps));
}

}  // namespace

bool ClipsMean(const optimizer::Optimizer& optimizer, const optimizer::Clipping& clipping) {
  return clipping.kind != optimizer::ClipKind::kNone && optimizer.gradient_accumulation_steps > 0;
}

void ApplyGradients(Builder& b, const optimizer::Optimizer& optimizer,
                    const optimizer::Clipping& clipping, std::vector<VariableGradient> gradients,
                    Output step) {
  const bool mean = ClipsMean(optimizer, clipping);
  for (VariableGradient& gradient : gradients) {
    if (!mean) break;
    Apply(b, optimizer, gradient, step, Part::kAccumulate);
    gradient.value = MeanGradient(b, optimizer, *gradient.variable);
    gradient.indices = {};
  }
  if (!b.ok()) return;
  Clip(b, clipping, gradients);
  if (!b.ok()) return;
  for (const VariableGradient& gradient : gradients)
    Apply(b, optimizer, gradient, step, mean ? Part::kUpdate : Part::kWhole);
}

}  // namespace tfjob::model
