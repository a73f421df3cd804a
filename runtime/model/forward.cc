#include <algorithm>
#include <map>
#include <optional>

#include "runtime/graph/ops.h"
#include "runtime/model/apply_layer.h"

namespace tfjob::model {
namespace {

using graph::Output;

// Appends the ops of a model, call by call.
class ForwardPass {
 public:
  ForwardPass(const Model& model, LayerCall& whole) : model_(model), whole_(whole) {}

  std::vector<Output> Run() {
    for (int call = 0; call < static_cast<int>(model_.calls.size()); ++call) {
      Append(call);
      if (!whole_.b.ok()) return {};
    }
    std::vector<Output> outputs;
    whole_.output_masks.emplace();
    for (const ValueRef& output : model_.outputs) {
      outputs.push_back(At(values_, output));
      whole_.output_masks->push_back(At(masks_, output));
    }
    return outputs;
  }

 private:
  using ByCall = std::vector<std::vector<Output>>;

  static Output At(const ByCall& outputs, const ValueRef& value) {
    return outputs[static_cast<size_t>(value.call)][static_cast<size_t>(value.output)];
  }

  void Append(int call) {
    const Call& at = model_.calls[static_cast<size_t>(call)];
    const Layer& layer = model_.layers[static_cast<size_t>(at.layer)];
    LayerCall part{.b = whole_.b,
                   .training = whole_.training,
                   .trainable = whole_.trainable && layer.trainable,
                   .step = whole_.step,
                   .seed = whole_.seed,
                   .replica = whole_.replica};
    if (at.inputs.empty()) {
      const auto found = std::ranges::find(model_.inputs, call) - model_.inputs.begin();
      const auto input = static_cast<size_t>(found);
      part.inputs.push_back(whole_.inputs[input]);
      part.masks.push_back(whole_.mask(input));
    }
    for (const ValueRef& input : at.inputs) {
      part.inputs.push_back(At(values_, input));
      part.masks.push_back(At(masks_, input));
    }
    for (size_t i = 0; i < at.masks.size(); ++i) {
      if (at.masks[i].call >= 0) part.masks[i] = At(values_, at.masks[i]);
    }
    const size_t first = VariablesOf(at, part);
    const graph::NameScope scope(whole_.b, layer.name);
    values_.push_back(Apply(layer, ConfigOf(model_, at), part));
    Penalize(layer, values_.back(), part);
    masks_.push_back(*std::move(part.output_masks));
    Collect(part, first);
  }

  static std::vector<Output> Apply(const Layer& layer, const LayerConfig& config, LayerCall& part) {
    std::optional<graph::RecomputeScope> recompute;
    if (layer.recompute && part.training) recompute.emplace(part.b);
    for (Output& input : part.inputs) {
      const DType wanted = WithoutDouble(config, {part.b.dtype(input), {}}).dtype;
      if (wanted != part.b.dtype(input)) input = Cast(part.b, input, wanted);
    }
    return ApplyLayer(layer, config, part);
  }

  // Passes the layer's variables to the call. Returns the index of the first variable.
  size_t VariablesOf(const Call& call, LayerCall& part) {
    const size_t count = VariablesOfConfig(ConfigOf(model_, call), part.ExampleTypes()).size();
    const auto [found, first_call] = first_variable_.try_emplace(call.layer, next_variable_);
    if (first_call) next_variable_ += count;
    for (size_t i = 0; i < count; ++i)
      part.variables.push_back(whole_.variables[found->second + i]);
    return found->second;
  }

  static void Penalize(const Layer& layer, const std::vector<Output>& outputs, LayerCall& part) {
    if (!layer.activity_regularizer.present() || !part.b.ok()) return;
    for (const Output output : outputs) {
      const Output penalty = ActivityPenalty(part.b, layer.activity_regularizer, output);
      part.penalties.push_back(Widened(part.b, penalty));
    }
  }

  // Collects the assignments and penalties of the call. As in Keras, later calls of the layer use
  // the assigned values.
  void Collect(const LayerCall& part, size_t first) {
    for (const Output penalty : part.penalties) whole_.penalties.push_back(penalty);
    for (const LayerCall::Assignment& assignment : part.assignments) {
      whole_.variables[first + assignment.variable] = assignment.value;
      std::erase_if(whole_.assignments, [&](const LayerCall::Assignment& earlier) {
        return earlier.variable == first + assignment.variable;
      });
      whole_.assignments.push_back({first + assignment.variable, assignment.value});
    }
  }

  const Model& model_;
  LayerCall& whole_;
  ByCall values_;
  ByCall masks_;                          // the masks of the values
  std::map<int, size_t> first_variable_;  // keyed by layer
  size_t next_variable_ = 0;
};

}  // namespace

std::vector<Output> Forward(const Model& model, LayerCall& call) {
  return ForwardPass(model, call).Run();
}

}  // namespace tfjob::model
