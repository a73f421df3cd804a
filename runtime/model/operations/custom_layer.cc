#include "runtime/model/operations/custom_layer.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "runtime/graph/ops.h"

namespace tfjob::model::layers {
namespace {

using graph::Builder;
using graph::Output;

constexpr char kNameCharacters[] =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";

// The outputs of a step, an input or a variable. `batched` is whether they depend on an input.
struct Value {
  std::vector<Output> outputs;
  bool batched = false;
};

// Returns whether the subscripts of an Einsum sum over no examples, and do not combine different
// examples: the first axis of the values with a batch, and no other axis, has the letter of the
// result's first axis. `batched` states for each operand whether it has a batch.
bool SubscriptsKeepExamplesApart(const std::string& text, const std::vector<bool>& batched) {
  const size_t comma = text.find(','), arrow = text.find("->");  // "bi,ij->bj"
  if (comma == std::string::npos || arrow == std::string::npos || arrow + 2 >= text.size())
    return false;
  const std::string terms[] = {text.substr(0, comma), text.substr(comma + 1, arrow - comma - 1)};
  const char batch = text[arrow + 2];
  if (text.find(batch, arrow + 3) != std::string::npos) return false;
  for (size_t i = 0; i < std::size(terms); ++i) {
    if (terms[i].rfind(batch) != (batched[i] ? 0 : std::string::npos)) return false;
  }
  return true;
}

// Runs the steps. Reports an error to the builder if a step combines examples.
class LayerSteps {
 public:
  LayerSteps(Builder& b, const CustomLayer& layer, int64_t batch_size)
      : b_(b), layer_(layer), batch_size_(batch_size) {}

  Output Run(const std::vector<Output>& inputs, const std::vector<Output>& variables) {
    for (const Output input : inputs) values_.push_back({{input}, true});
    for (const Output variable : variables) values_.push_back({{variable}, false});
    for (const CustomLayer::Step& step : layer_.steps) {
      Append(step);
      if (!b_.ok()) return {};
    }
    const Output last = At(layer_.output);
    if (!b_.ok()) return {};
    if (values_[layer_.output.value].batched) return last;
    return b_.Fail(InvalidArgument("expected an output that depends on an input of the layer"));
  }

 private:
  // Reports an error to the builder if the step has no such output.
  Output At(const CustomLayer::Ref& ref) {
    const std::vector<Output>& outputs = values_[ref.value].outputs;
    if (ref.output < outputs.size()) return outputs[ref.output];
    return b_.Fail(InvalidArgument("expected a value with more than ", ref.output,
                                   " outputs, got one with ", outputs.size()));
  }

  void Append(const CustomLayer::Step& step) {
    LayerCall part{.b = b_};
    std::vector<bool> batched;
    bool any = false;
    for (const CustomLayer::Ref& input : step.inputs) {
      part.inputs.push_back(At(input));
      batched.push_back(values_[input.value].batched);
      any = any || batched.back();
    }
    if (!b_.ok()) return;
    std::vector<Output> outputs = step.operation.ApplyToArrays(part);
    if (b_.ok() && any &&
        !(IsAligned(step.operation, part.inputs, batched) &&
          KeepsExamplesApart(step.operation, batched, outputs))) {
      b_.Fail(InvalidArgument("operation ", step.name, " (", step.operation.class_name(),
                              "): expected a function that computes each example separately, and ",
                              "keeps the batch as the first axis of its result"));
    }
    values_.push_back({std::move(outputs), any});
  }

  // Returns false if an input with a batch has fewer axes than another input. Broadcasting aligns
  // the last axes, so it would align the axis of the examples with another axis. `batched` states
  // for each input of the operation whether it has a batch.
  bool IsAligned(const Operation& operation, const std::vector<Output>& inputs,
                 const std::vector<bool>& batched) const {
    if (!operation.broadcasts()) return true;
    int rank = 0;
    for (const Output input : inputs) rank = std::max(rank, b_.shape(input).rank());
    for (size_t i = 0; i < inputs.size(); ++i)
      if (batched[i] && b_.shape(inputs[i]).rank() < rank) return false;
    return true;
  }

  bool KeepsExamplesApart(const Operation& operation, const std::vector<bool>& batched,
                          const std::vector<Output>& outputs) const {
    for (const Output output : outputs) {
      const Shape& shape = b_.shape(output);
      if (shape.rank() == 0 || shape.dim(0) != batch_size_) return false;
    }
    if (operation.class_name() != "Einsum") return true;
    std::vector<bool> operands;
    for (const CallOperand& operand : operation.operands)
      operands.push_back(operand.input != kNoInput && batched[static_cast<size_t>(operand.input)]);
    return SubscriptsKeepExamplesApart(operation.subscripts, operands);
  }

  Builder& b_;
  const CustomLayer& layer_;
  const int64_t batch_size_;
  std::vector<Value> values_;
};

// Returns the type of the output for this batch size.
StatusOr<TensorType> TypeFor(const CustomLayer& layer, std::span<const TensorType> in,
                             int64_t batch_size) {
  Builder b;
  std::vector<Output> inputs, variables;
  for (const TensorType& type : in) {
    const std::string name = StrCat("input_", inputs.size());
    inputs.push_back(Placeholder(b, name, type.dtype, Batched(batch_size, type.shape)));
  }
  for (const VariableSpec& variable : layer.variables) {
    variables.push_back(
        Placeholder(b, StrCat("variable_", variables.size()), variable.dtype, variable.shape));
  }
  const Output output = LayerSteps(b, layer, batch_size).Run(inputs, variables);
  RETURN_IF_ERROR(b.status());
  return TensorType{b.dtype(output), ExampleOf(b.shape(output))};
}

}  // namespace

Status CheckVariables(const CustomLayer& layer) {
  std::set<std::string> names;
  for (const VariableSpec& variable : layer.variables) {
    const std::string& name = variable.name;
    if (name.empty() || name.find_first_not_of(kNameCharacters) != std::string::npos) {
      return InvalidArgument("variable \"", name, "\": expected a name of letters, digits and '_'");
    }
    if (!names.insert(name).second)
      return InvalidArgument("two variables are called ", name, "; give each its own name");
    const std::string what = StrCat("variable ", name);
    RETURN_IF_ERROR(Annotate(CheckShape(variable.initializer, variable.shape), what));
    RETURN_IF_ERROR(Annotate(CheckShape(variable.rules.regularizer, variable.shape), what));
  }
  return OkStatus();
}

// Tries two batch sizes, because the size of an axis may be equal to one of them by coincidence.
StatusOr<std::vector<TensorType>> CustomLayer::OutputTypes(std::span<const TensorType> in) const {
  if (in.size() != inputs) return InvalidArgument("expected ", inputs, " inputs, got ", in.size());
  ASSIGN_OR_RETURN(const TensorType type, TypeFor(*this, in, 1'013));
  ASSIGN_OR_RETURN(TensorType other, TypeFor(*this, in, 1'009));
  if (type != other) {
    return InvalidArgument("expected an output whose shape for one example does not depend on the ",
                           "number of examples");
  }
  return std::vector<TensorType>{std::move(other)};
}

std::vector<Output> CustomLayer::Apply(LayerCall& call) const {
  if (!call.b.ok()) return {};
  return {LayerSteps(call.b, *this, call.batch_size()).Run(call.inputs, call.variables)};
}

}  // namespace tfjob::model::layers
