// Implements Scan, except for its gradient.
#include "runtime/graph/scan.h"

#include <map>
#include <utility>

#include "runtime/graph/family.h"
#include "runtime/graph/ops.h"
#include "runtime/graph/subgraph.h"

namespace tfjob::graph {
namespace {

// Limits the number of inputs of a Scan.
constexpr int kMostParts = 4096;

Shape WithSteps(int64_t steps, const Shape& shape) {
  std::vector<int64_t> dims = shape.dims();
  dims.insert(dims.begin(), steps);
  return Shape(std::move(dims));
}

// Returns the type of one element of a sequence.
StatusOr<TensorType> ElementOf(const TensorType& sequence, int64_t steps) {
  const std::vector<int64_t>& dims = sequence.shape.dims();
  if (dims.empty() || dims[0] != steps) {
    return InvalidArgument("expected sequences of ", steps, " steps, got ", sequence.ToString());
  }
  return TensorType{sequence.dtype, Shape(std::vector<int64_t>(dims.begin() + 1, dims.end()))};
}

// Checks that the types of the body's placeholders match the types of the inputs.
Status CheckPlaceholders(const ScanForm& form, const std::vector<TensorType>& inputs) {
  std::map<std::string, TensorType> expected;
  for (int i = 0; i < static_cast<int>(inputs.size()); ++i) {
    const TensorType& input = inputs[static_cast<size_t>(i)];
    if (i < form.states) {
      expected[StateName(i)] = input;
    } else if (i < form.states + form.sequences) {
      ASSIGN_OR_RETURN(expected[SequenceName(i - form.states)], ElementOf(input, form.steps));
    } else {
      expected[InvariantName(i - form.states - form.sequences)] = input;
    }
  }
  for (const Node& node : form.body->nodes()) {
    const Effect effect = FindOp(node.op)->effect;
    if (effect == Effect::kNone) continue;
    if (effect != Effect::kFeed) {
      return InvalidArgument("a body accesses no variables and has no exchanges, but it contains ",
                             node.op);
    }
    const auto found = expected.find(node.name);
    if (found == expected.end() || found->second != node.outputs[0]) {
      return InvalidArgument("the placeholder ", node.name, " of the body is ",
                             node.outputs[0].ToString(), ", which fits no input");
    }
    expected.erase(found);
  }
  if (expected.empty()) return OkStatus();
  return InvalidArgument("the body has no placeholder ", expected.begin()->first);
}

InferResult InferScan(InferenceContext& context) {
  ASSIGN_OR_RETURN(const ScanForm form, ScanFormOf(context.attributes));
  if (static_cast<int>(context.inputs.size()) < form.states + form.sequences)
    return InvalidArgument("expected at least one input per state and sequence");
  RETURN_IF_ERROR(CheckPlaceholders(form, context.inputs));
  std::vector<TensorType> types;
  for (int i = 0; i < form.states; ++i) {
    const TensorType& input = context.inputs[static_cast<size_t>(i)];
    const TensorType& next = form.body->type(form.body->FindFetch(StateName(i))->output);
    if (next != input) {
      return InvalidArgument("state ", i, " is ", input.ToString(), " before a step, and ",
                             next.ToString(), " after it");
    }
    types.push_back(input);
  }
  for (int i = 0; i < form.outputs; ++i) {
    const TensorType& one = form.body->type(form.body->FindFetch(OutputName(i))->output);
    types.push_back({one.dtype, WithSteps(form.steps, one.shape)});
  }
  return types;
}

// Returns the value of the attribute `name`, a number of states or sequences, if it is from 0 to
// kMostParts.
StatusOr<int> CountOf(const Attributes& attributes, std::string_view name) {
  const int64_t count = attributes.Get<int64_t>(name, 0);
  if (count >= 0 && count <= kMostParts) return static_cast<int>(count);
  return InvalidArgument("expected the attribute ", name, ", a number of parts");
}

Status Missing(const std::string& fetch) {
  return InvalidArgument("the body has no fetch ", fetch);
}

}  // namespace

std::string StateName(int index) {
  return StrCat("state_", index);
}
std::string SequenceName(int index) {
  return StrCat("sequence_", index);
}
std::string InvariantName(int index) {
  return StrCat("invariant_", index);
}
std::string OutputName(int index) {
  return StrCat("output_", index);
}

StatusOr<ScanForm> ScanFormOf(const Attributes& attributes) {
  ScanForm form{.body = Subgraph::Find(attributes, "body"),
                .steps = attributes.Get<int64_t>("steps", 0)};
  if (form.body == nullptr) return InvalidArgument("expected an attribute body, a graph");
  if (form.steps < 1) return InvalidArgument("expected at least one step, got ", form.steps);
  ASSIGN_OR_RETURN(form.states, CountOf(attributes, "states"));
  ASSIGN_OR_RETURN(form.sequences, CountOf(attributes, "sequences"));
  form.outputs = static_cast<int>(form.body->fetches().size()) - form.states;
  for (int i = 0; i < form.states; ++i) {
    if (form.body->FindFetch(StateName(i)) == nullptr) return Missing(StateName(i));
  }
  for (int i = 0; i < form.outputs; ++i) {
    if (form.body->FindFetch(OutputName(i)) == nullptr) return Missing(OutputName(i));
  }
  const auto reversed = attributes.Get("reversed", std::vector<int64_t>());
  if (static_cast<int>(reversed.size()) != form.sequences + form.outputs)
    return InvalidArgument("expected the attribute reversed, a flag per sequence and output");
  form.reversed_sequences.assign(reversed.begin(), reversed.begin() + form.sequences);
  form.reversed_outputs.assign(reversed.begin() + form.sequences, reversed.end());
  return form;
}

std::vector<Op> ScanOps() {
  return {{"Scan", 0, kMostParts, InferScan, ScanGradient}};
}

Output ScanBuilder::Feed(const std::string& name, const TensorType& type) {
  return Placeholder(body_, name, type.dtype, type.shape);
}

Output ScanBuilder::State(Output initial) {
  states_.push_back(initial);
  next_.emplace_back();
  return Feed(StateName(static_cast<int>(states_.size()) - 1), outer_.type(initial));
}

Output ScanBuilder::Sequence(Output value, bool reversed) {
  const std::string name = SequenceName(static_cast<int>(sequences_.size()));
  sequences_.push_back(value);
  reversed_sequences_.push_back(reversed);
  StatusOr<TensorType> element = ElementOf(outer_.type(value), steps_);
  return element.ok() ? Feed(name, *element) : outer_.Fail(element.status());
}

Output ScanBuilder::Invariant(Output value) {
  invariants_.push_back(value);
  return Feed(InvariantName(static_cast<int>(invariants_.size()) - 1), outer_.type(value));
}

void ScanBuilder::SetNext(int state, Output value) {
  next_[static_cast<size_t>(state)] = value;
}

int ScanBuilder::Stack(Output value, bool reversed) {
  stacked_.push_back(value);
  reversed_outputs_.push_back(reversed);
  return static_cast<int>(stacked_.size()) - 1;
}

ScanBuilder::Results ScanBuilder::Finish() {
  Results results{std::vector<Output>(states_.size()), std::vector<Output>(stacked_.size())};
  for (int i = 0; i < static_cast<int>(next_.size()); ++i)
    body_.AddFetch(StateName(i), next_[static_cast<size_t>(i)]);
  for (int i = 0; i < static_cast<int>(stacked_.size()); ++i)
    body_.AddFetch(OutputName(i), stacked_[static_cast<size_t>(i)]);
  StatusOr<Graph> body = std::move(body_).Finish();
  if (!body.ok()) {
    outer_.Fail(body.status());
    return results;
  }
  std::vector<Output> inputs = states_;
  inputs.insert(inputs.end(), sequences_.begin(), sequences_.end());
  inputs.insert(inputs.end(), invariants_.begin(), invariants_.end());
  std::vector<int64_t> reversed = reversed_sequences_;
  reversed.insert(reversed.end(), reversed_outputs_.begin(), reversed_outputs_.end());
  const Output scan = outer_.Add("Scan", std::move(inputs),
                                 {{"body", Subgraph::Of(*std::move(body))},
                                  {"steps", steps_},
                                  {"states", static_cast<int64_t>(states_.size())},
                                  {"sequences", static_cast<int64_t>(sequences_.size())},
                                  {"reversed", std::move(reversed)}});
  if (!scan.valid()) return results;
  int index = 0;
  for (Output& state : results.states) state = {scan.node, index++};
  for (Output& output : results.outputs) output = {scan.node, index++};
  return results;
}

}  // namespace tfjob::graph
