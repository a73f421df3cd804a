#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "runtime/graph/passes.h"
#include "runtime/graph/passes/constants.h"
#include "runtime/graph/passes/rewriter.h"
#include "runtime/tensor/half.h"

namespace tfjob::graph {
namespace {

// The largest size of a head for which the devices' kernels are fast.
constexpr int64_t kLargestHead = 128;

// The values of one attention: y = drop(softmax(mask(scale·q kᵀ))) v. The tensors have the shape
// [batch,positions,heads,size]. Values that do not occur are invalid.
struct Attention {
  Output q, k, v;  // before the Transpose to [batch,heads,positions,size]
  Output mask;
  Output weights;          // of the softmax
  Output used;             // the weights that are multiplied with v
  Output product;          // used · v
  Output y;                // the transposed product
  Output dropout;          // the output of Dropout
  Attributes attributes;   // of the op Attention
  std::vector<int> nodes;  // that the op replaces, except the one that computes y
  // The gradients.
  Output dy;
  Output dq, dk, dv;
  std::vector<int> gradient_nodes;
  // If q is the product of a value and a number, the value and its gradient.
  Output unscaled, d_unscaled;
};

class AttentionFinder {
 public:
  explicit AttentionFinder(const Graph& graph) : graph_(graph) {
    for (int id = 0; id < static_cast<int>(graph.nodes().size()); ++id)
      for (const Output& input : graph.node(id).inputs) users_[input].push_back(id);
    for (const Fetch& fetch : graph.fetches()) fetched_.insert(fetch.output);
  }

  // Returns the attention whose last product is this node.
  std::optional<Attention> Find(int id) const {
    Attention found;
    if (!FindForward(id, found)) return std::nullopt;
    if (!OnlyForward(found) && !FindBackward(found)) return std::nullopt;
    FindScale(found);
    return found;
  }

 private:
  const Node& NodeOf(Output value) const { return graph_.node(value.node); }
  const std::vector<int>& UsersOf(Output value) const {
    static const auto* const kNone = new std::vector<int>;
    const auto found = users_.find(value);
    return found == users_.end() ? *kNone : found->second;
  }
  // Returns the only node that uses the value, or -1 if it has another number of uses.
  int OnlyUser(Output value) const {
    return UsersOf(value).size() == 1 && !fetched_.contains(value) ? UsersOf(value)[0] : -1;
  }
  // Returns whether only these nodes use the value.
  bool UsedOnlyBy(Output value, const std::set<int>& nodes) const {
    return !fetched_.contains(value) &&
           std::ranges::all_of(UsersOf(value), [&](int user) { return nodes.contains(user); });
  }

  bool IsHeads(int id) const {
    const Node& node = graph_.node(id);
    const auto* order = node.attributes.Find<std::vector<int64_t>>("perm");
    return node.op == "Transpose" && order != nullptr && *order == std::vector<int64_t>{0, 2, 1, 3};
  }
  // Sets `to` to the value before the Transpose that splits the heads.
  bool Untransposed(Output value, Output& to) const {
    if (!IsHeads(value.node)) return false;
    to = NodeOf(value).inputs[0];
    return true;
  }
  bool IsProduct(Output value, bool adj_x, bool adj_y) const {
    const Node& node = NodeOf(value);
    return node.op == "BatchMatMulV2" && node.attributes.Get("adj_x", false) == adj_x &&
           node.attributes.Get("adj_y", false) == adj_y;
  }
  // Returns whether the value is Select(mask, x, other), where all elements of `other` are equal.
  bool IsMasked(Output value) const {
    const Node& node = NodeOf(value);
    return node.op == "Select" && graph_.type(node.inputs[1]) == graph_.type(value) &&
           NumberIn(node.inputs[2]).has_value();
  }
  std::optional<double> NumberIn(Output value) const { return UniformValue(graph_, value); }

  bool FindForward(int id, Attention& a) const {
    a.product = {id, 0};
    if (!IsProduct(a.product, false, false) || !IsHalf(graph_.type(a.product).dtype)) return false;
    if (graph_.type(a.product).shape.rank() != 4) return false;
    const int transposed = OnlyUser(a.product);
    if (transposed < 0 || !IsHeads(transposed)) return false;
    a.y = {transposed, 0};
    a.used = graph_.node(id).inputs[0];
    if (!Untransposed(graph_.node(id).inputs[1], a.v)) return false;
    return FindWeights(a.used, a) && Fits(a);
  }

  // Follows the weights from the last op back to the scores.
  bool FindWeights(Output at, Attention& a) const {
    const auto before = [&at, &a, this](size_t input) {
      a.nodes.push_back(at.node);
      at = NodeOf(at).inputs[input];
    };
    if (NodeOf(at).op == "Dropout") {
      a.dropout = at;
      a.attributes = NodeOf(at).attributes;
      before(0);
    }
    if (IsMasked(at)) {
      if (NumberIn(NodeOf(at).inputs[2]) != 0.0) return false;
      a.mask = NodeOf(at).inputs[0];
      a.attributes.Set("clears", true);
      before(1);
    }
    if (NodeOf(at).op != "Softmax") return false;
    a.weights = at;
    before(0);
    if (IsMasked(at)) {
      if (a.mask.valid() && a.mask != NodeOf(at).inputs[0]) return false;
      const double masked = *NumberIn(NodeOf(at).inputs[2]);
      if (!(masked <= 0)) return false;  // the weight of a large number could be infinite
      a.mask = NodeOf(at).inputs[0];
      a.attributes.Set("masked", masked);
      before(1);
    } else if (a.mask.valid()) {
      return false;
    }
    if (!IsProduct(at, false, true)) return false;
    a.nodes.push_back(at.node);
    const Node& scores = NodeOf(at);
    return Untransposed(scores.inputs[0], a.q) && Untransposed(scores.inputs[1], a.k);
  }

  bool Fits(const Attention& a) const {
    const Shape &q = graph_.type(a.q).shape, &k = graph_.type(a.k).shape;
    const Shape& v = graph_.type(a.v).shape;
    if (q.rank() != 4 || k.rank() != 4 || v.rank() != 4) return false;
    const bool same = q.dim(0) == k.dim(0) && q.dim(2) == k.dim(2) && k.dim(0) == v.dim(0) &&
                      k.dim(1) == v.dim(1) && k.dim(2) == v.dim(2);
    if (!same || std::max(q.dim(3), v.dim(3)) > kLargestHead) return false;
    if (a.mask.valid() && graph_.type(a.mask).shape.rank() > 4) return false;
    return q.num_elements() > 0 && k.num_elements() > 0 && v.num_elements() > 0;
  }

  // Returns whether no gradient is computed: nothing else uses the values between q, k, v and y.
  bool OnlyForward(const Attention& a) const {
    std::set<int> own(a.nodes.begin(), a.nodes.end());
    own.insert(a.product.node);
    return std::ranges::all_of(a.nodes, [&](int node) { return UsedOnlyBy({node, 0}, own); });
  }

  // Follows the gradient of the used weights to the gradient of the scores.
  bool FindBackward(Attention& a) const {
    if (!FindValueGradient(a)) return false;
    Output at = WeightGradient(a);
    if (!at.valid()) return false;
    a.gradient_nodes.push_back(at.node);
    const auto follow = [&](auto accepts) {
      const int user = OnlyUser(at);
      if (user < 0 || !accepts(graph_.node(user))) return false;
      at = {user, 0};
      a.gradient_nodes.push_back(user);
      return true;
    };
    if (a.dropout.valid() && !follow([&](const Node& node) { return IsGradientOf(a, node); }))
      return false;
    const auto masks = [&](const Node& node) {
      return node.op == "Select" && node.inputs[0] == a.mask && node.inputs[1] == at &&
             NumberIn(node.inputs[2]) == 0.0;
    };
    if (a.attributes.Get("clears", false) && !follow(masks)) return false;
    const auto softmax = [&](const Node& node) {
      return node.op == "SoftmaxGrad" && node.inputs == std::vector{a.weights, at};
    };
    if (!follow(softmax)) return false;
    if (a.mask.valid() && !follow(masks)) return false;
    return FindProductGradients(at, a) && IsClosed(a);
  }

  bool IsGradientOf(const Attention& a, const Node& node) const {
    const Node& dropout = NodeOf(a.dropout);
    return node.op == "DropoutGrad" && node.attributes == dropout.attributes &&
           node.inputs[1] == dropout.inputs[1] && node.inputs[2] == dropout.inputs[2];
  }

  // Returns the only user of the value, which exchanges positions and heads, or an invalid Output.
  Output TransposedUse(Output value) const {
    const int user = OnlyUser(value);
    return user >= 0 && IsHeads(user) ? Output{user, 0} : Output();
  }

  // Finds dv = usedᵀ dy.
  bool FindValueGradient(Attention& a) const {
    for (const int user : UsersOf(a.used)) {
      const Node& node = graph_.node(user);
      if (user == a.product.node || !IsProduct({user, 0}, true, false)) continue;
      if (node.inputs[0] != a.used || !Untransposed(node.inputs[1], a.dy)) continue;
      a.dv = TransposedUse({user, 0});
      a.gradient_nodes.push_back(user);
      return a.dv.valid();
    }
    return false;
  }

  // Returns dy vᵀ.
  Output WeightGradient(const Attention& a) const {
    const Output v = NodeOf(a.product).inputs[1];
    for (const int user : UsersOf(v)) {
      if (!IsProduct({user, 0}, false, true) || graph_.node(user).inputs[1] != v) continue;
      Output dy;
      if (Untransposed(graph_.node(user).inputs[0], dy) && dy == a.dy) return {user, 0};
    }
    return {};
  }

  // Finds dq and dk, which are products of the gradient of the scores.
  bool FindProductGradients(Output scores, Attention& a) const {
    for (const int user : UsersOf(scores)) {
      const Node& node = graph_.node(user);
      Output other;
      if (node.inputs.size() != 2 || node.inputs[0] != scores ||
          !Untransposed(node.inputs[1], other))
        return false;
      if (IsProduct({user, 0}, false, false) && other == a.k) {
        a.dq = TransposedUse({user, 0});
      } else if (IsProduct({user, 0}, true, false) && other == a.q) {
        a.dk = TransposedUse({user, 0});
      } else {
        return false;
      }
      a.gradient_nodes.push_back(user);
    }
    return UsersOf(scores).size() == 2 && a.dq.valid() && a.dk.valid();
  }

  // Returns the input of a product with a number, and that number.
  std::optional<std::pair<Output, double>> Unscaled(Output value) const {
    const Node& node = NodeOf(value);
    if (node.op != "Mul") return std::nullopt;
    const auto scale = NumberIn(node.inputs[1]);
    if (!scale || graph_.type(node.inputs[0]) != graph_.type(value)) return std::nullopt;
    return std::pair(node.inputs[0], *scale);
  }

  // If the queries were multiplied by a number before they were reshaped, the op multiplies by it.
  void FindScale(Attention& a) const {
    if (NodeOf(a.q).op != "Reshape") return;
    const auto unscaled = Unscaled(NodeOf(a.q).inputs[0]);
    if (!unscaled) return;
    if (a.dq.valid()) {
      const int reshaped = OnlyUser(a.dq);
      if (reshaped < 0 || graph_.node(reshaped).op != "Reshape") return;
      const int scaled = OnlyUser({reshaped, 0});
      if (scaled < 0) return;
      const auto gradient = Unscaled({scaled, 0});
      if (!gradient || *gradient != std::pair(Output{reshaped, 0}, unscaled->second)) return;
      a.d_unscaled = {scaled, 0};
    }
    a.unscaled = unscaled->first;
    a.attributes.Set("scale", unscaled->second);
  }

  // Returns whether only the attention and its gradients use the values between them, and whether
  // dy is known before the first gradient.
  bool IsClosed(const Attention& a) const {
    std::set<int> own(a.nodes.begin(), a.nodes.end());
    own.insert(a.product.node);
    own.insert(a.gradient_nodes.begin(), a.gradient_nodes.end());
    const auto closed = [&](int node) { return UsedOnlyBy({node, 0}, own); };
    const int first = std::ranges::min(std::vector{a.dq.node, a.dk.node, a.dv.node});
    return std::ranges::all_of(a.nodes, closed) && a.dy.node < first && a.y.node < first;
  }

  const Graph& graph_;
  std::map<Output, std::vector<int>> users_;
  std::set<Output> fetched_;
};

class AttentionFuser {
 public:
  explicit AttentionFuser(const Graph& graph) : graph_(graph), rewriter_(graph) {
    const AttentionFinder finder(graph);
    for (int id = 0; id < static_cast<int>(graph.nodes().size()); ++id)
      if (auto found = finder.Find(id)) all_.push_back(*std::move(found));
  }

  Graph Run() {
    std::map<int, Attention*> forward, backward;
    std::set<int> gradients;
    for (Attention& a : all_) {
      forward[a.y.node] = &a;
      if (!a.dy.valid()) continue;
      for (const Output gradient : {a.dq, a.dk, a.dv, a.d_unscaled})
        gradients.insert(gradient.node);
      backward[std::min({a.dq.node, a.dk.node, a.dv.node})] = &a;
    }
    for (int id = 0; id < static_cast<int>(graph_.nodes().size()); ++id) {
      if (const auto found = forward.find(id); found != forward.end()) {
        AppendForward(*found->second);
      } else if (const auto first = backward.find(id); first != backward.end()) {
        AppendBackward(id, *first->second);
      } else if (!gradients.contains(id)) {
        rewriter_.Copy(id);
      }
    }
    return RemoveDeadCode(std::move(rewriter_).Finish());
  }

 private:
  // Adds the inputs that both ops have at the end.
  void AddOptional(const Attention& a, std::vector<Output>& inputs) const {
    if (a.mask.valid()) inputs.push_back(a.mask);
    if (!a.dropout.valid()) return;
    const Node& dropout = graph_.node(a.dropout.node);
    inputs.insert(inputs.end(), dropout.inputs.begin() + 1, dropout.inputs.end());
  }

  // Returns a new value with the elements of `value` and the shape of the old value `like`.
  Output ReshapedTo(int id, Output value, Output like, std::string_view suffix) {
    return rewriter_.Append(id, "Reshape", {value}, {{"shape", graph_.type(like).shape}}, suffix);
  }

  void AppendForward(Attention& a) {
    std::vector<Output> inputs = {a.q, a.k, a.v};
    AddOptional(a, inputs);
    inputs = rewriter_.Now(inputs);
    if (a.unscaled.valid())
      inputs[0] = ReshapedTo(a.y.node, rewriter_.Now(a.unscaled), a.q, "/query");
    queries_[a.y] = inputs[0];
    fused_[a.y] = rewriter_.Append(a.y.node, "Attention", inputs, a.attributes);
    rewriter_.Replace(a.y, fused_[a.y]);
  }

  void AppendBackward(int id, const Attention& a) {
    const Output fused = fused_.at(a.y);
    std::vector<Output> inputs = {a.dy};
    AddOptional(a, inputs);
    inputs = rewriter_.Now(inputs);
    const std::vector<Output> before = {
        queries_.at(a.y), rewriter_.Now(a.k), rewriter_.Now(a.v), fused, {fused.node, 1}};
    inputs.insert(inputs.begin(), before.begin(), before.end());
    const Output gradient = rewriter_.Append(id, "AttentionGrad", inputs, a.attributes);
    rewriter_.Replace(a.dq, gradient);
    rewriter_.Replace(a.dk, {gradient.node, 1});
    rewriter_.Replace(a.dv, {gradient.node, 2});
    if (a.d_unscaled.valid())
      rewriter_.Replace(a.d_unscaled, ReshapedTo(id, gradient, a.d_unscaled, "/query"));
  }

  const Graph& graph_;
  Rewriter rewriter_;
  std::vector<Attention> all_;
  std::map<Output, Output> fused_, queries_;  // new values, by y
};

}  // namespace

Graph FuseAttention(const Graph& graph) {
  const Graph live = RemoveDeadCode(graph);
  return AttentionFuser(live).Run();
}

}  // namespace tfjob::graph
