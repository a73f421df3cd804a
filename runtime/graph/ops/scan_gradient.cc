// Implements the gradient of Scan as another Scan, whose body is the gradient of the original body
// and which runs from the last step to the first.
//
// The forward Scan is extended: values of its body that the gradient needs become additional
// outputs. The gradient of an invariant is a sum over the steps. If a step contributes a matrix
// product or a sum over rows, the loop only stacks the operands, and a single operation after the
// loop computes the contributions of all steps.
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/graph/backpropagate.h"
#include "runtime/graph/family.h"
#include "runtime/graph/ops.h"
#include "runtime/graph/scan.h"
#include "runtime/graph/subgraph.h"

namespace tfjob::graph {
namespace {

// Identifies the Scan input that corresponds to a placeholder of the body.
struct Role {
  enum Kind { kState, kSequence, kInvariant } kind;
  int index;
};

std::map<int, Role> RolesOf(const Graph& body) {
  std::map<int, Role> roles;
  std::map<std::string, int> ids;
  for (int id = 0; id < static_cast<int>(body.nodes().size()); ++id) {
    if (body.node(id).op == "Placeholder") ids[body.node(id).name] = id;
  }
  const auto add = [&](std::string (*name)(int), Role::Kind kind) {
    for (int i = 0; ids.contains(name(i)); ++i) roles[ids[name(i)]] = {kind, i};
  };
  add(StateName, Role::kState);
  add(SequenceName, Role::kSequence);
  add(InvariantName, Role::kInvariant);
  return roles;
}

Output ZerosOf(Builder& b, const TensorType& type) {
  return Fill(b, type.dtype, type.shape, 0);
}

// Represents a value of each step, stacked into one tensor outside the loops. Element t belongs to
// forward step t or, if `reversed` is set, to forward step steps - 1 - t.
struct Stacked {
  Output value;
  bool reversed = false;
};

class ScanDifferentiator {
 public:
  ScanDifferentiator(GradientContext& c, const ScanForm& form)
      : c_(c),
        form_(form),
        forward_(*form.body),
        roles_(RolesOf(forward_)),
        both_(forward_),
        scan_(c.b, form.steps) {}

  Gradient Run() {
    Differentiate();
    if (both_.ok()) SaveForwardValues();
    if (!both_.ok()) c_.b.Fail(both_.status());
    if (!c_.b.ok()) return Gradient(c_.node.inputs.size());
    AddInputs();
    CopyBackwardNodes();
    return Finish();
  }

 private:
  // Appends the gradient of one step to `both_`, a copy of the body.
  void Differentiate() {
    std::vector<Output> values, gradients, wrt;
    const auto seed = [&](const std::string& name, bool given) {
      const Output value = forward_.FindFetch(name)->output;
      if (!given || !IsFloat(both_.dtype(value))) return Output();
      values.push_back(value);
      gradients.push_back(Placeholder(both_, "d_" + name, both_.dtype(value), both_.shape(value)));
      return gradients.back();
    };
    const std::set<int> states = StatesWithGradients();
    for (int i = 0; i < form_.states; ++i)
      d_next_.push_back(seed(StateName(i), states.contains(i)));
    for (int i = 0; i < form_.outputs; ++i)
      d_outputs_.push_back(seed(OutputName(i), GradientOf(form_.states + i).valid()));
    for (const auto& [id, role] : roles_) {
      const bool wanted = role.kind == Role::kState
                              ? d_next_[static_cast<size_t>(role.index)].valid()
                              : c_.wanted[static_cast<size_t>(InputOf(role))];
      if (wanted) wrt.push_back({id, 0});
    }
    const auto found = Backpropagate(both_, values, gradients, wrt, /*rows=*/false);
    for (size_t i = 0; i < wrt.size(); ++i) gradients_[wrt[i].node] = found[i].dense;
  }

  // Returns the states whose gradients may differ from 0: the final value of the state has a
  // gradient, or an output or another such state depends on it.
  std::set<int> StatesWithGradients() const {
    std::set<int> states;
    std::vector<int> open;
    std::vector<bool> seen(forward_.nodes().size());
    const auto visit = [&](Output value) {
      if (!seen[static_cast<size_t>(value.node)]) open.push_back(value.node);
      seen[static_cast<size_t>(value.node)] = true;
    };
    const auto add = [&](int state) {
      if (states.insert(state).second) visit(forward_.FindFetch(StateName(state))->output);
    };
    for (int i = 0; i < form_.states; ++i) {
      if (GradientOf(i).valid()) add(i);
    }
    for (int i = 0; i < form_.outputs; ++i) {
      if (GradientOf(form_.states + i).valid()) visit(forward_.FindFetch(OutputName(i))->output);
    }
    while (!open.empty()) {
      const int id = open.back();
      open.pop_back();
      const auto role = roles_.find(id);
      if (role != roles_.end() && role->second.kind == Role::kState) add(role->second.index);
      for (Output input : forward_.node(id).inputs) visit(input);
    }
    return states;
  }

  Output GradientOf(int output) const { return c_.gradients[static_cast<size_t>(output)]; }

  // Returns the placeholder's position among the Scan's inputs.
  int InputOf(const Role& role) const {
    if (role.kind == Role::kState) return role.index;
    return role.index + form_.states + (role.kind == Role::kInvariant ? form_.sequences : 0);
  }
  Output OuterOf(const Role& role) const { return c_.input(InputOf(role)); }

  bool IsForward(Output value) const {
    return value.node < static_cast<int>(forward_.nodes().size());
  }
  bool IsConstant(Output value) const { return both_.graph().node(value).op == "Const"; }

  // Finds the backward nodes that the gradients depend on, and extends the forward Scan so that it
  // outputs the values that these nodes use.
  void SaveForwardValues() {
    std::vector<Output> open;
    for (const auto& [id, gradient] : gradients_) {
      if (gradient.valid()) open.push_back(gradient);
    }
    std::set<Output> saved;
    while (!open.empty()) {
      const Output value = open.back();
      open.pop_back();
      if (IsForward(value)) {
        const auto role = roles_.find(value.node);
        const bool given = role != roles_.end() && role->second.kind != Role::kState;
        if (!given && !IsConstant(value)) saved.insert(value);
        used_forward_.insert(value);
        continue;
      }
      const Node& node = both_.graph().node(value);
      if (node.op == "Placeholder" || !needed_.insert(value.node).second) continue;
      open.insert(open.end(), node.inputs.begin(), node.inputs.end());
    }
    Extend(saved);
  }

  void Extend(const std::set<Output>& saved) {
    int count = form_.outputs;
    // Copy the nodes from both_, not from forward_: nested Scans have been extended for their
    // gradients only in both_.
    Graph body;
    for (int id = 0; id < static_cast<int>(forward_.nodes().size()); ++id)
      body.Append(both_.graph().node(id));
    for (const Fetch& fetch : forward_.fetches()) body.AddFetch(fetch);
    auto reversed = c_.node.attributes.Get("reversed", std::vector<int64_t>());
    for (int i = 0; i < form_.outputs; ++i) {
      stacked_.try_emplace(
          forward_.FindFetch(OutputName(i))->output,
          Stacked{c_.output(form_.states + i), form_.reversed_outputs[static_cast<size_t>(i)]});
    }
    for (Output value : saved) {
      if (stacked_.contains(value)) continue;
      stacked_[value] = {c_.output(form_.states + count), false};
      body.AddFetch({OutputName(count++), value});
      reversed.push_back(0);
    }
    if (count == form_.outputs) return;
    Attributes attributes = c_.node.attributes;
    attributes.Set("body", Subgraph::Of(std::move(body)));
    attributes.Set("reversed", std::move(reversed));
    c_.b.Extend(c_.id, std::move(attributes));
  }

  // Adds the inputs of the backward Scan: the incoming gradients and the forward values.
  void AddInputs() {
    for (int i = 0; i < form_.states; ++i) {
      const Output d_next = d_next_[static_cast<size_t>(i)];
      if (!d_next.valid()) continue;
      const Output last = GradientOf(i);
      states_.push_back(i);
      now_[d_next] = scan_.State(last.valid() ? last : ZerosOf(c_.b, c_.b.type(c_.output(i))));
    }
    for (int i = 0; i < form_.outputs; ++i) {
      const Output d_output = d_outputs_[static_cast<size_t>(i)];
      if (!d_output.valid()) continue;
      now_[d_output] = scan_.Sequence(GradientOf(form_.states + i),
                                      !form_.reversed_outputs[static_cast<size_t>(i)]);
    }
    for (Output value : used_forward_) {
      if (IsConstant(value)) {
        now_[value] =
            Const(scan_.body(), *both_.graph().node(value).attributes.Find<Tensor>("value"));
        continue;
      }
      const auto role = roles_.find(value.node);
      if (role != roles_.end() && role->second.kind == Role::kInvariant) {
        now_[value] = scan_.Invariant(OuterOf(role->second));
      } else {
        const Stacked stacked = StackedForward(value);
        now_[value] = scan_.Sequence(stacked.value, !stacked.reversed);
      }
    }
  }

  // Returns a forward value, stacked over all steps. The value must be a sequence or have been
  // saved.
  Stacked StackedForward(Output value) const {
    const auto role = roles_.find(value.node);
    if (role == roles_.end() || role->second.kind != Role::kSequence) return stacked_.at(value);
    return {OuterOf(role->second),
            form_.reversed_sequences[static_cast<size_t>(role->second.index)]};
  }

  void CopyBackwardNodes() {
    for (int id : needed_) {
      const Node& node = both_.graph().node(id);
      std::vector<Output> inputs;
      for (Output input : node.inputs) inputs.push_back(now_[input]);
      const Output copy = scan_.body().Add(node.op, std::move(inputs), node.attributes, node.name);
      for (int i = 0; i < static_cast<int>(node.outputs.size()); ++i)
        now_[{id, i}] = {copy.node, i};
    }
  }

  // Represents one term of an invariant's gradient, which is the sum of the contributions of all
  // steps. If a contribution is itself a sum, each of its terms becomes a separate part, because
  // some terms can be computed after the loop.
  struct Part {
    enum Kind { kProduct, kRows, kAccumulated } kind;
    std::vector<int> outputs;  // outputs of the backward Scan
    std::vector<Stacked> operands;
    const Node* node = nullptr;
    int state = 0;
  };

  void Split(Output gradient, std::vector<Part>& parts) {
    const Node& node = both_.graph().node(gradient);
    if (!IsForward(gradient) && node.op == "Add" &&
        both_.type(node.inputs[0]) == both_.type(node.inputs[1])) {
      Split(node.inputs[0], parts);
      Split(node.inputs[1], parts);
      return;
    }
    const bool product = node.op == "MatMul" && node.attributes.Get("transpose_a", false) &&
                         !node.attributes.Get("transpose_b", false);
    const bool rows = node.op == "BiasAddGrad";
    if (!IsForward(gradient) && (product || rows) && StackOperands(node, product, parts)) return;
    Part part{.kind = Part::kAccumulated, .state = static_cast<int>(states_.size()) + extra_++};
    const Output sum = scan_.State(ZerosOf(c_.b, both_.type(gradient)));
    scan_.SetNext(part.state, Add(scan_.body(), sum, now_[gradient]));
    parts.push_back(std::move(part));
  }

  // Stacks the operands of a node over the steps, all in the same step order. Returns false if this
  // is not possible.
  bool StackOperands(const Node& node, bool product, std::vector<Part>& parts) {
    Part part{.kind = product ? Part::kProduct : Part::kRows, .node = &node};
    std::optional<bool> reversed;
    for (Output input : node.inputs) {
      if (!IsForward(input)) continue;
      if (IsConstant(input) || IsInvariant(input)) return false;
      const bool own = StackedForward(input).reversed;
      if (reversed.value_or(own) != own) return false;
      reversed = own;
    }
    for (Output input : node.inputs) {
      part.operands.push_back(IsForward(input) ? StackedForward(input) : Stacked{});
      part.outputs.push_back(IsForward(input) ? -1 : Stack(input, reversed.value_or(false)));
    }
    parts.push_back(std::move(part));
    return true;
  }

  bool IsInvariant(Output value) const {
    const auto role = roles_.find(value.node);
    return role != roles_.end() && role->second.kind == Role::kInvariant;
  }

  // Adds an output that stacks a backward value in the order of the forward steps, or in reverse
  // order if `reversed` is set. Returns the index of the output.
  int Stack(Output value, bool reversed) {
    const auto [found, added] = outputs_.try_emplace({value, reversed}, 0);
    if (added) found->second = scan_.Stack(now_[value], !reversed);
    return found->second;
  }

  Output Total(const Part& part, const ScanBuilder::Results& results) {
    if (part.kind == Part::kAccumulated) return results.states[static_cast<size_t>(part.state)];
    std::vector<Output> rows;
    for (size_t i = 0; i < part.operands.size(); ++i) {
      const Output value = part.outputs[i] < 0
                               ? part.operands[i].value
                               : results.outputs[static_cast<size_t>(part.outputs[i])];
      rows.push_back(Reshape(c_.b, value, {-1, c_.b.shape(value).dim(-1)}));
    }
    return c_.b.Add(part.node->op, std::move(rows), part.node->attributes);
  }

  Gradient Finish() {
    for (size_t s = 0; s < states_.size(); ++s) {
      const Output placeholder = PlaceholderOf(states_[s]);
      const Output gradient = gradients_[placeholder.node];
      scan_.SetNext(static_cast<int>(s), gradient.valid()
                                             ? now_[gradient]
                                             : ZerosOf(scan_.body(), both_.type(placeholder)));
    }
    std::map<int, int> sequences;           // input → output of the backward Scan for a sequence
    std::map<int, std::vector<Part>> sums;  // keyed by input
    for (const auto& [id, role] : roles_) {
      const auto found = gradients_.find(id);
      if (found == gradients_.end() || !found->second.valid()) continue;
      if (role.kind == Role::kSequence) {
        sequences[InputOf(role)] =
            Stack(found->second, form_.reversed_sequences[static_cast<size_t>(role.index)]);
      } else if (role.kind == Role::kInvariant) {
        Split(found->second, sums[InputOf(role)]);
      }
    }
    const ScanBuilder::Results results = scan_.Finish();
    Gradient gradient(c_.node.inputs.size());
    if (!c_.b.ok()) return gradient;
    for (size_t s = 0; s < states_.size(); ++s)
      gradient[static_cast<size_t>(states_[s])] = results.states[s];
    for (const auto& [input, output] : sequences)
      gradient[static_cast<size_t>(input)] = results.outputs[static_cast<size_t>(output)];
    for (const auto& [input, parts] : sums) {
      for (const Part& part : parts) {
        Output& sum = gradient[static_cast<size_t>(input)];
        const Output total = Total(part, results);
        sum = sum.valid() ? Add(c_.b, sum, total) : total;
      }
    }
    return gradient;
  }

  Output PlaceholderOf(int state) const {
    for (const auto& [id, role] : roles_) {
      if (role.kind == Role::kState && role.index == state) return {id, 0};
    }
    return {};
  }

  GradientContext& c_;
  const ScanForm& form_;
  const Graph forward_;
  const std::map<int, Role> roles_;         // keyed by the position of the placeholder
  Builder both_;                            // the body and its gradient
  ScanBuilder scan_;                        // the backward Scan
  std::vector<Output> d_next_, d_outputs_;  // placeholders of `both_`; invalid if no gradient
  std::map<int, Output> gradients_;         // gradients in `both_`, keyed by placeholder
  std::set<Output> used_forward_;           // forward values that the backward nodes use
  std::set<int> needed_;                    // the backward nodes
  std::map<Output, Stacked> stacked_;       // the forward Scan's outputs, by the stacked value
  std::map<Output, Output> now_;            // values of `both_` → values of the backward body
  std::map<std::pair<Output, bool>, int> outputs_;  // the backward Scan's outputs
  std::vector<int> states_;                         // the forward state of each backward state
  int extra_ = 0;                                   // number of states that accumulate a gradient
};

}  // namespace

Gradient ScanGradient(GradientContext& c) {
  const StatusOr<ScanForm> form = ScanFormOf(c.node.attributes);
  ENFORCE(form.ok(), "inference has accepted the attributes");
  return ScanDifferentiator(c, *form).Run();
}

}  // namespace tfjob::graph
