#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/graph/backpropagate.h"
#include "runtime/graph/gelu.h"
#include "runtime/graph/ops.h"
#include "runtime/graph/passes.h"
#include "runtime/graph/passes/rewriter.h"
#include "runtime/tensor/half.h"

namespace tfjob::graph {
namespace {

// The graph of an approximate GELU y of x and its gradient, as models and Backpropagate build it.
struct GeluTemplate {
  Graph graph;
  Output x, y, dy, dx;
};

std::optional<GeluTemplate> GeluTemplateOf(const TensorType& type) {
  Builder b;
  GeluTemplate made;
  made.x = Placeholder(b, "x", type.dtype, type.shape);
  made.dy = Placeholder(b, "dy", type.dtype, type.shape);
  made.y = ApproximateGelu(b, made.x);
  const auto found = Backpropagate(b, std::vector{made.y}, std::vector{made.dy},
                                   std::vector{made.x}, /*rows=*/false);
  if (!b.ok()) return std::nullopt;
  made.dx = found[0].dense;
  auto graph = std::move(b).Finish();
  if (!graph.ok()) return std::nullopt;
  made.graph = *std::move(graph);
  return made;
}

// Compares values of a graph with those of a template, whose placeholders stand for any values.
class TemplateMatch {
 public:
  TemplateMatch(const Graph& made, const Graph& graph) : made_(made), graph_(graph) {}

  // Returns whether `value` is computed as `wanted` is in the template.
  bool Matches(Output wanted, Output value) {
    const auto [known, added] = values_.emplace(wanted, value);
    if (!added) return known->second == value;
    const Node &a = made_.node(wanted), &b = graph_.node(value);
    if (made_.type(wanted) != graph_.type(value)) return false;
    if (a.op == "Placeholder") return true;
    if (wanted.index != value.index || a.op != b.op || a.attributes != b.attributes ||
        a.inputs.size() != b.inputs.size())
      return false;
    nodes_.insert(value.node);
    for (size_t i = 0; i < a.inputs.size(); ++i)
      if (!Matches(a.inputs[i], b.inputs[i])) return false;
    return true;
  }

  // Returns the value for which a placeholder stands.
  Output At(Output placeholder) const { return values_.at(placeholder); }
  // Returns whether only the matched nodes use the value.
  bool UsesAll(Output value, int uses) const {
    for (const int id : nodes_)
      for (const Output input : graph_.node(id).inputs) uses -= input == value ? 1 : 0;
    return uses == 0;
  }

 private:
  const Graph& made_;
  const Graph& graph_;
  std::map<Output, Output> values_;  // by value of the template
  std::set<int> nodes_;              // without those that placeholders stand for
};

// The GELU y of a value x, which is a product to which a bias may have been added. x and y may have
// another shape than the product.
struct ProductGelu {
  Output x, y;                 // x has the shape of the product
  std::vector<Output> inputs;  // of the product, and the bias
  Attributes attributes;
};

// The gradient dx of a GELU of x. The gradient of its result is a product, which may have another
// shape.
struct GeluGradient {
  Output x, dx, product;
};

class GeluFinder {
 public:
  explicit GeluFinder(const Graph& graph) : graph_(graph), uses_(CountUses(graph)) {}

  std::optional<ProductGelu> FindForward(int id) {
    const GeluTemplate* const made = TemplateFor(id, "Mul");
    if (made == nullptr) return std::nullopt;
    TemplateMatch match(made->graph, graph_);
    if (!match.Matches(made->y, {id, 0})) return std::nullopt;
    return ProductBefore(match.At(made->x), {id, 0});
  }

  std::optional<GeluGradient> FindBackward(int id) {
    const GeluTemplate* const made = TemplateFor(id, "Add");
    if (made == nullptr) return std::nullopt;
    TemplateMatch match(made->graph, graph_);
    if (!match.Matches(made->dx, {id, 0})) return std::nullopt;
    const Output dy = match.At(made->dy), product = Unshaped(dy);
    const Node& node = graph_.node(product);
    const bool only = match.UsesAll(dy, uses_.at(dy)) && (product == dy || uses_.at(product) == 1);
    if (!IsForwardProduct(node) || node.device != graph_.node(id).device || !only)
      return std::nullopt;
    return GeluGradient{match.At(made->x), {id, 0}, product};
  }

 private:
  // Excludes products that sum over rows, which are the gradients of weights.
  static bool IsForwardProduct(const Node& node) {
    return node.op == "MatMul" && !node.attributes.Get("transpose_a", false);
  }

  // Returns the input of a Reshape, or the value itself if no Reshape computes it.
  Output Unshaped(Output value) const {
    const Node& node = graph_.node(value);
    return node.op == "Reshape" ? node.inputs[0] : value;
  }

  // Returns the template for the type of the node's value, or null if the node has another op or no
  // half type.
  const GeluTemplate* TemplateFor(int id, const char* op) {
    const Node& node = graph_.node(id);
    if (node.op != op || !IsHalf(node.outputs[0].dtype)) return nullptr;
    const TensorType& type = node.outputs[0];
    const auto [found, added] = templates_.try_emplace(type.ToString());
    if (added) found->second = GeluTemplateOf(type);
    return found->second ? &*found->second : nullptr;
  }

  // Returns the product that computes x.
  std::optional<ProductGelu> ProductBefore(Output x, Output y) const {
    ProductGelu found{.x = Unshaped(x), .y = y, .inputs = {}, .attributes = {}};
    const Node& last = graph_.node(found.x);
    const bool bias = last.op == "BiasAdd";
    if (bias && uses_.at(last.inputs[0]) != 1) return std::nullopt;
    const Node& product = bias ? graph_.node(last.inputs[0]) : last;
    if (!IsForwardProduct(product)) return std::nullopt;
    if (last.device != product.device || graph_.node(y).device != product.device)
      return std::nullopt;
    found.inputs = product.inputs;
    found.attributes = product.attributes;
    if (bias) {
      found.inputs.push_back(last.inputs[1]);
      found.attributes.Set("bias", true);
    }
    return found;
  }

  const Graph& graph_;
  const std::map<Output, int> uses_;
  std::map<std::string, std::optional<GeluTemplate>> templates_;  // by type
};

class GeluFuser {
 public:
  explicit GeluFuser(const Graph& graph) : graph_(graph), rewriter_(graph) {
    GeluFinder finder(graph);
    for (int id = 0; id < static_cast<int>(graph.nodes().size()); ++id) {
      if (const auto found = finder.FindForward(id); found && !products_.contains(found->x)) {
        products_.emplace(found->x, *found);
        x_of_[found->y] = found->x;
      }
      if (const auto found = finder.FindBackward(id)) gradients_.emplace(found->dx, *found);
    }
  }

  Graph Run() {
    for (int id = 0; id < static_cast<int>(graph_.nodes().size()); ++id) {
      const Output value{id, 0};
      if (const auto product = products_.find(value); product != products_.end()) {
        AppendProduct(product->second);
      } else if (const auto x = x_of_.find(value); x != x_of_.end()) {
        const Output gelu = {rewriter_.Now(x->second).node, 0};
        rewriter_.Replace(value, Reshaped(id, gelu, graph_.type(value).shape, ""));
      } else if (const auto gradient = gradients_.find(value); gradient != gradients_.end()) {
        AppendGradient(id, gradient->second);
      } else {
        rewriter_.Copy(id);
      }
    }
    return RemoveDeadCode(std::move(rewriter_).Finish());
  }

 private:
  // Returns a new value with this shape.
  Output Reshaped(int id, Output value, const Shape& shape, std::string_view suffix) {
    if (rewriter_.graph().type(value).shape == shape) return value;
    return rewriter_.Append(id, "Reshape", {value}, {{"shape", shape}}, suffix);
  }

  void AppendProduct(const ProductGelu& gelu) {
    const Output fused =
        rewriter_.Append(gelu.x.node, "MatMulGelu", rewriter_.Now(gelu.inputs), gelu.attributes);
    rewriter_.Replace(gelu.x, {fused.node, 1});
  }

  void AppendGradient(int id, const GeluGradient& gradient) {
    const Node& product = graph_.node(gradient.product);
    std::vector<Output> inputs = rewriter_.Now(product.inputs);
    inputs.push_back(
        Reshaped(id, rewriter_.Now(gradient.x), graph_.type(gradient.product).shape, "/before"));
    const Output fused =
        rewriter_.Append(id, "MatMulGeluGrad", std::move(inputs), product.attributes, "/product");
    rewriter_.Replace(gradient.dx, Reshaped(id, fused, graph_.type(gradient.dx).shape, ""));
  }

  const Graph& graph_;
  Rewriter rewriter_;
  std::map<Output, ProductGelu> products_;    // by x
  std::map<Output, Output> x_of_;             // by y
  std::map<Output, GeluGradient> gradients_;  // by dx
};

}  // namespace

Graph FuseGelu(const Graph& graph) {
  const Graph live = RemoveDeadCode(graph);
  return GeluFuser(live).Run();
}

}  // namespace tfjob::graph
