#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/graph/backpropagate.h"
#include "runtime/graph/ops.h"
#include "runtime/graph/passes.h"
#include "runtime/graph/passes/constants.h"
#include "runtime/graph/passes/rewriter.h"
#include "runtime/tensor/half.h"

namespace tfjob::graph {
namespace {

// The values of one layer normalization, y = (x - mean) / √(variance + epsilon) · gamma + beta over
// the last axis, and of its gradients. gamma and beta have one axis.
struct NormalizationValues {
  Output x, gamma, beta, y;
  double epsilon = 0;
  Output dy, dx, d_gamma, d_beta;  // invalid if no gradients are computed
};

// The graph of a normalization and its gradients, as layers and Backpropagate build it.
struct Template {
  Graph graph;
  NormalizationValues values;
};

std::optional<Template> TemplateOf(const Shape& shape, double epsilon, bool gradients) {
  Builder b;
  NormalizationValues v;
  const DType dtype = DType::kFloat32;
  const std::vector<int64_t> axes = {shape.rank() - 1};
  std::vector<int64_t> along(static_cast<size_t>(shape.rank()), 1);
  along.back() = shape.dim(-1);
  v.x = Placeholder(b, "x", dtype, shape);
  v.gamma = Placeholder(b, "gamma", dtype, {shape.dim(-1)});
  v.beta = Placeholder(b, "beta", dtype, {shape.dim(-1)});
  const Output gamma = Reshape(b, v.gamma, Shape(along)), beta = Reshape(b, v.beta, Shape(along));
  const Output mean = Mean(b, v.x, axes, true);
  const Output variance = Mean(b, Square(b, Sub(b, v.x, mean)), axes, true);
  const Output inverse = Rsqrt(b, Add(b, variance, Scalar(b, dtype, epsilon)));
  v.y = Add(b, Mul(b, Sub(b, v.x, mean), Mul(b, inverse, gamma)), beta);
  b.AddFetch("y", v.y);
  if (gradients) {
    v.dy = Placeholder(b, "dy", dtype, shape);
    const auto found = Backpropagate(b, std::vector{v.y}, std::vector{v.dy},
                                     std::vector{v.x, v.gamma, v.beta}, false);
    if (!b.ok()) return std::nullopt;
    b.AddFetch("dx", found[0].dense);
    b.AddFetch("d_gamma", found[1].dense);
    b.AddFetch("d_beta", found[2].dense);
  }
  auto graph = std::move(b).Finish();
  if (!graph.ok()) return std::nullopt;
  Template made{MergeCommonSubexpressions(RemoveDeadCode(*graph)), {}};
  const Graph& merged = made.graph;
  for (int id = 0; id < static_cast<int>(merged.nodes().size()); ++id) {
    const std::string& name = merged.node(id).name;
    if (name == "x") made.values.x = {id, 0};
    if (name == "gamma") made.values.gamma = {id, 0};
    if (name == "beta") made.values.beta = {id, 0};
    if (name == "dy") made.values.dy = {id, 0};
  }
  made.values.y = merged.FindFetch("y")->output;
  if (!gradients) return made;
  made.values.dx = merged.FindFetch("dx")->output;
  made.values.d_gamma = merged.FindFetch("d_gamma")->output;
  made.values.d_beta = merged.FindFetch("d_beta")->output;
  return made;
}

class NormalizationFinder {
 public:
  explicit NormalizationFinder(const Graph& graph) : graph_(graph) {
    for (int id = 0; id < static_cast<int>(graph.nodes().size()); ++id) {
      const Node& node = graph.node(id);
      by_inputs_[{node.op, node.inputs}].push_back(id);
      for (const Output& input : node.inputs) users_[input].insert(id);
    }
    for (const Fetch& fetch : graph.fetches()) users_[fetch.output].insert(-1);
  }

  // Returns the normalization whose result this node computes.
  std::optional<NormalizationValues> Find(int id) const {
    NormalizationValues v;
    if (!FindForward(id, v)) return std::nullopt;
    if (Matches(v)) return v;
    for (const int user : UsersOf(Factor(v))) {
      const Node& node = graph_.node(user);
      if (user < id || node.op != "Mul" || node.inputs[1] != Factor(v)) continue;
      v.dy = node.inputs[0];
      if (Matches(v)) return v;
    }
    return std::nullopt;
  }

  const std::set<int>& UsersOf(Output value) const {
    static const auto* const kNone = new std::set<int>;
    const auto found = users_.find(value);
    return found == users_.end() ? *kNone : found->second;
  }

 private:
  const Node& NodeOf(Output value) const { return graph_.node(value.node); }

  // Returns input `input` of the node that computes the value, if that node has this op.
  bool Follow(Output value, const char* op, size_t input, Output& to) const {
    const Node& node = NodeOf(value);
    if (node.op != op) return false;
    to = node.inputs[input];
    return true;
  }

  // Returns the factor of x - mean.
  Output Factor(const NormalizationValues& v) const {
    return NodeOf(NodeOf(v.y).inputs[0]).inputs[1];
  }

  // Finds the inputs of a normalization. Matches then checks all ops in between.
  bool FindForward(int id, NormalizationValues& v) const {
    v.y = {id, 0};
    if (graph_.node(id).op != "Add") return false;
    if (graph_.type(v.y).dtype != DType::kFloat32 || graph_.type(v.y).shape.rank() < 2)
      return false;
    Output product, centered, factor, inverse, gamma, beta, sum, epsilon;
    const bool found = Follow(v.y, "Add", 0, product) && Follow(v.y, "Add", 1, beta) &&
                       Follow(product, "Mul", 0, centered) && Follow(product, "Mul", 1, factor) &&
                       Follow(centered, "Sub", 0, v.x) && Follow(factor, "Mul", 0, inverse) &&
                       Follow(factor, "Mul", 1, gamma) && Follow(gamma, "Reshape", 0, v.gamma) &&
                       Follow(beta, "Reshape", 0, v.beta) && Follow(inverse, "Rsqrt", 0, sum) &&
                       Follow(sum, "Add", 1, epsilon);
    if (!found) return false;
    const auto number = UniformValue(graph_, epsilon);
    if (!number || graph_.type(v.x) != graph_.type(v.y)) return false;
    const Shape row = {graph_.type(v.x).shape.dim(-1)};
    if (graph_.type(v.gamma).shape != row || graph_.type(v.beta).shape != row) return false;
    v.epsilon = *number;
    return graph_.type(v.x).shape.num_elements() > 0;
  }

  // Finds the node of each node of the template. Returns whether there is one for each, and nothing
  // else uses the values in between. If dy is valid, also sets the other gradients.
  bool Matches(NormalizationValues& v) const {
    const auto made = TemplateOf(graph_.type(v.x).shape, v.epsilon, v.dy.valid());
    if (!made) return false;
    const NormalizationValues& t = made->values;
    std::map<Output, Output> real = {{t.x, v.x}, {t.gamma, v.gamma}, {t.beta, v.beta}};
    if (v.dy.valid()) real[t.dy] = v.dy;
    std::set<int> own;
    for (int id = 0; id < static_cast<int>(made->graph.nodes().size()); ++id) {
      if (real.contains({id, 0})) continue;
      const Node& node = made->graph.node(id);
      const int same = Same(node, real);
      if (same < 0) return false;
      real[{id, 0}] = {same, 0};
      if (!node.inputs.empty()) own.insert(same);
    }
    if (real.at(t.y) != v.y) return false;
    std::set<Output> results = {v.y};
    if (v.dy.valid()) {
      v.dx = real.at(t.dx);
      v.d_gamma = real.at(t.d_gamma);
      v.d_beta = real.at(t.d_beta);
      results.insert({v.dx, v.d_gamma, v.d_beta});
    }
    return std::ranges::all_of(own, [&](int id) {
      // Others may use the reshaped gamma and beta.
      return results.contains({id, 0}) || graph_.node(id).op == "Reshape" ||
             std::ranges::includes(own, UsersOf({id, 0}));
    });
  }

  // Returns the node that has the op and the attributes of a template's node, and the real values
  // as its inputs; -1 if there is none.
  int Same(const Node& node, const std::map<Output, Output>& real) const {
    std::vector<Output> inputs;
    for (const Output& input : node.inputs) inputs.push_back(real.at(input));
    const auto found = by_inputs_.find({node.op, inputs});
    if (found == by_inputs_.end()) return -1;
    for (const int id : found->second)
      if (graph_.node(id).attributes == node.attributes) return id;
    return -1;
  }

  const Graph& graph_;
  std::map<std::pair<std::string, std::vector<Output>>, std::vector<int>> by_inputs_;
  std::map<Output, std::set<int>> users_;  // -1: a fetch
};

class NormalizationFuser {
 public:
  explicit NormalizationFuser(const Graph& graph)
      : graph_(graph), finder_(graph), rewriter_(graph) {
    for (int id = 0; id < static_cast<int>(graph.nodes().size()); ++id)
      if (auto found = finder_.Find(id)) all_.push_back(*found);
  }

  Graph Run() {
    std::map<int, const NormalizationValues*> forward, backward;
    std::set<int> replaced;
    for (const NormalizationValues& v : all_) {
      forward[v.y.node] = &v;
      if (!v.dy.valid()) continue;
      backward[std::min({v.dx.node, v.d_gamma.node, v.d_beta.node})] = &v;
      for (const Output result : {v.dx, v.d_gamma, v.d_beta}) replaced.insert(result.node);
    }
    for (int id = 0; id < static_cast<int>(graph_.nodes().size()); ++id) {
      if (const auto found = forward.find(id); found != forward.end()) {
        AppendForward(*found->second);
      } else if (const auto first = backward.find(id); first != backward.end()) {
        AppendBackward(id, *first->second);
      } else if (const auto value = converted_.find({id, 0}); value != converted_.end()) {
        rewriter_.Replace({id, 0}, value->second);
      } else if (!replaced.contains(id)) {
        rewriter_.Copy(id);
      }
    }
    return RemoveDeadCode(std::move(rewriter_).Finish());
  }

 private:
  // Returns the value in a half type that this value was converted from, or else the value.
  Output Unconverted(Output value) const {
    const Node& node = graph_.node(value.node);
    return node.op == "Cast" && IsHalf(graph_.type(node.inputs[0]).dtype) ? node.inputs[0] : value;
  }

  // If the only use of the value is a conversion to a half type, returns its result.
  Output Converted(Output value) const {
    const std::set<int>& users = finder_.UsersOf(value);
    if (users.size() != 1 || *users.begin() < 0) return value;
    const Output to{*users.begin(), 0};
    return graph_.node(to.node).op == "Cast" && IsHalf(graph_.type(to).dtype) ? to : value;
  }

  // Records that `value` replaces `as`, which is `old` or its only use, a conversion.
  void Replace(Output old, Output as, Output value) {
    if (as == old) return rewriter_.Replace(old, value);
    converted_[as] = value;
    rewriter_.Replace(old, rewriter_.Append(old.node, "Cast", {value},
                                            {{"dtype", graph_.type(old).dtype}}, "/wide"));
  }

  void AppendForward(const NormalizationValues& v) {
    const Output to = Converted(v.y);
    const Output fused =
        rewriter_.Append(v.y.node, "LayerNormalization",
                         rewriter_.Now(std::vector{Unconverted(v.x), v.gamma, v.beta}),
                         {{"epsilon", v.epsilon}, {"dtype", graph_.type(to).dtype}});
    fused_[v.y] = fused;
    Replace(v.y, to, fused);
  }

  void AppendBackward(int id, const NormalizationValues& v) {
    const Output to = Converted(v.dx);
    std::vector<Output> inputs = rewriter_.Now(std::vector{Unconverted(v.x), v.gamma});
    inputs.push_back({fused_.at(v.y).node, 1});
    inputs.push_back(rewriter_.Now(Unconverted(v.dy)));
    const Output gradient =
        rewriter_.Append(id, "LayerNormalizationGrad", inputs, {{"dtype", graph_.type(to).dtype}});
    Replace(v.dx, to, gradient);
    rewriter_.Replace(v.d_gamma, {gradient.node, 1});
    rewriter_.Replace(v.d_beta, {gradient.node, 2});
  }

  const Graph& graph_;
  const NormalizationFinder finder_;
  Rewriter rewriter_;
  std::vector<NormalizationValues> all_;
  std::map<Output, Output> fused_;      // new, by y
  std::map<Output, Output> converted_;  // new values of conversions, which are not copied
};

}  // namespace

Graph FuseLayerNormalization(const Graph& graph) {
  const Graph live = MergeCommonSubexpressions(RemoveDeadCode(graph));
  return NormalizationFuser(live).Run();
}

}  // namespace tfjob::graph
