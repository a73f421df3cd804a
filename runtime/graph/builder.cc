#include "runtime/graph/builder.h"

#include <algorithm>
#include <utility>

#include "runtime/graph/device.h"
#include "runtime/graph/op.h"

namespace tfjob::graph {

Builder::Builder(Graph graph) : graph_(std::move(graph)) {
  for (const Node& node : graph_.nodes()) {
    names_[node.name] = 1;
    next_op_id_ = std::max(next_op_id_, node.attributes.Get<int64_t>("op_id", -1) + 1);
  }
}

std::string Builder::UniqueName(std::string base) {
  int& uses = names_[base];
  if (uses++ == 0) return base;
  std::string name;
  do {
    name = StrCat(base, "_", names_[base]++ - 1);
  } while (names_.contains(name));
  names_[name] = 1;
  return name;
}

Output Builder::Add(std::string_view op, std::vector<Output> inputs, Attributes attributes,
                    std::string_view name) {
  std::vector<TensorType> types;
  for (Output input : inputs) {
    if (!input.valid()) {
      return ok() ? Fail(InvalidArgument("op ", op, " got an invalid input")) : Output();
    }
    types.push_back(graph_.type(input));
  }
  auto outputs = InferTypes(op, types, attributes);
  const Effect effect = outputs.ok() ? FindOp(op)->effect : Effect::kNone;
  std::string wanted(name.empty() ? op : name);
  if (effect == Effect::kNone || effect == Effect::kExchange) wanted = scope_ + wanted;
  if (!outputs.ok()) return Fail(Annotate(outputs.status(), "node " + wanted));
  if (effect == Effect::kFeed && names_.contains(wanted)) {
    return Fail(AlreadyExists("node ", wanted, ": the name of a Placeholder must be unused"));
  }
  Node node{std::string(op),       UniqueName(std::move(wanted)), std::move(inputs),
            std::move(attributes), *std::move(outputs),           device_};
  return Output{graph_.Append(std::move(node)), 0};
}

bool Builder::Extend(int id, Attributes attributes) {
  const Node& node = graph_.node(id);
  std::vector<TensorType> types;
  for (Output input : node.inputs) types.push_back(graph_.type(input));
  auto outputs = InferTypes(node.op, types, attributes);
  if (!outputs.ok()) {
    Fail(Annotate(outputs.status(), "node " + node.name));
    return false;
  }
  graph_.Extend(id, std::move(attributes), *std::move(outputs));
  return true;
}

void Builder::AddFetch(std::string_view name, Output output) {
  if (!output.valid()) {
    if (ok()) Fail(InvalidArgument("fetch ", name, " got an invalid output"));
    return;
  }
  if (graph_.FindFetch(name) != nullptr) {
    Fail(AlreadyExists("fetch ", name, " already exists; rename one of the two"));
    return;
  }
  graph_.AddFetch({std::string(name), output});
}

const TensorType& Builder::type(Output output) const {
  static const TensorType* const kNone = new TensorType();
  return output.valid() ? graph_.type(output) : *kNone;
}

Output Builder::Fail(Status error) {
  if (status_.ok()) status_ = std::move(error);
  return Output();
}

StatusOr<Graph> Builder::Finish() && {
  if (!status_.ok()) return status_;
  return std::move(graph_);
}

NameScope::NameScope(Builder& builder, std::string_view name)
    : builder_(builder), outer_(builder.scope_) {
  builder.scope_ += std::string(name) + "/";
}

NameScope::~NameScope() {
  builder_.scope_ = outer_;
}

DeviceScope::DeviceScope(Builder& builder, std::string_view device)
    : builder_(builder), outer_(builder.device_) {
  auto inner = DeviceSpec::Parse(device);
  auto outer = DeviceSpec::Parse(outer_);
  if (!inner.ok()) {
    builder.Fail(inner.status());
  } else {
    builder.device_ = outer->MergedWith(*inner).ToString();
  }
}

DeviceScope::~DeviceScope() {
  builder_.device_ = outer_;
}

RecomputeScope::RecomputeScope(Builder& builder)
    : builder_(builder), begin_(static_cast<int>(builder.graph_.nodes().size())) {
  ++builder.recompute_scopes_;
}

RecomputeScope::~RecomputeScope() {
  if (--builder_.recompute_scopes_ > 0) return;
  const int end = static_cast<int>(builder_.graph_.nodes().size());
  if (begin_ < end) builder_.recomputed_.push_back({begin_, end});
}

}  // namespace tfjob::graph
