#include "runtime/exec/scan_rows.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "runtime/graph/op.h"

namespace tfjob::exec {
namespace {

using graph::Graph;
using graph::Node;
using graph::Output;
using graph::ScanForm;

// The minimum number of rows per loop, because matrix products with fewer rows are less efficient.
// The minimum is higher if the weights do not fit into a core's second-level cache, because each
// loop reads all weights in every step.
constexpr int64_t kLeastRows = 16, kLeastRowsOfLargeWeights = 64;
constexpr size_t kLargeWeights = 2 << 20;
// The minimum number of multiplications per loop that justifies waking a thread.
constexpr double kLeastWork = 1 << 20;
constexpr int64_t kMostLoops = 32;
// The cost of one element of an elementwise op, relative to one multiplication of a product.
constexpr double kElementwiseWork = 8;

bool IsProduct(const Node& node) {
  return node.op == "MatMul" || node.op == "FusedMatMul";
}

// Returns whether element i of the output depends only on element i of the (broadcast) inputs.
bool IsElementwise(const Node& node) {
  static const auto* const kOthers = new std::set<std::string>{
      "FusedElementwise", "Identity", "Cast", "Select", "Equal", "Greater", "GreaterEqual", "Less"};
  const graph::Op* op = graph::FindOp(node.op);
  return (op != nullptr && op->elementwise) || kOthers->contains(node.op);
}

class RowFinder {
 public:
  explicit RowFinder(const ScanForm& form) : form_(form), body_(*form.body) {}

  std::optional<ScanRows> Run() {
    const graph::Fetch* first = body_.FindFetch(graph::StateName(0));
    if (first == nullptr || body_.type(first->output).shape.rank() < 2) return std::nullopt;
    found_.rows = body_.type(first->output).shape.dim(0);
    found_.sequences.resize(static_cast<size_t>(form_.sequences));
    for (int i = 0; i < form_.sequences; ++i) sequences_[graph::SequenceName(i)] = i;
    NumberInvariants();
    found_.nodes.resize(body_.nodes().size());
    for (int id = 0; id < static_cast<int>(body_.nodes().size()); ++id) {
      if (!Visit(id)) return std::nullopt;
    }
    for (const graph::Fetch& fetch : body_.fetches()) {
      if (!HasRows(fetch.output)) return std::nullopt;
    }
    for (int id : divided_) {
      if (whole_.contains(id)) return std::nullopt;  // another node reads it as a whole
      found_.nodes[static_cast<size_t>(id)] = true;
      const auto invariant = invariants_.find(body_.node(id).name);
      if (invariant != invariants_.end()) found_.invariants[invariant->second] = true;
    }
    found_.work *= static_cast<double>(form_.steps);
    return found_;
  }

 private:
  bool HasRows(Output value) const { return found_.nodes[static_cast<size_t>(value.node)]; }
  const Shape& ShapeOf(Output value) const { return body_.type(value).shape; }
  bool FitsRows(const Shape& shape) const {
    return shape.rank() >= 2 && shape.dim(0) == found_.rows;
  }

  // Decides whether the node's output has rows. Returns false if a row of the output may depend on
  // several rows of an input.
  bool Visit(int id) {
    const Node& node = body_.node(id);
    bool rows = false;
    if (node.op == "Placeholder") {
      if (!VisitPlaceholder(node, rows)) return false;
    } else if (std::ranges::any_of(node.inputs, [&](Output input) { return HasRows(input); })) {
      if (node.outputs.size() != 1 || !FitsRows(node.outputs[0].shape)) return false;
      if (!(IsElementwise(node) ? VisitElementwise(node) : VisitProduct(node))) return false;
      rows = true;
    } else {
      for (Output input : node.inputs) whole_.insert(input.node);
    }
    found_.nodes[static_cast<size_t>(id)] = rows;
    return true;
  }

  void NumberInvariants() {
    std::set<std::string> names;
    for (const Node& node : body_.nodes()) names.insert(node.name);
    for (int i = 0; names.contains(graph::InvariantName(i)); ++i)
      invariants_[graph::InvariantName(i)] = static_cast<size_t>(i);
    found_.invariants.resize(invariants_.size());
  }

  bool VisitPlaceholder(const Node& node, bool& rows) {
    rows = FitsRows(node.outputs[0].shape);
    if (invariants_.contains(node.name)) {
      rows = false;  // unless a node later reads it by row
    } else if (const auto sequence = sequences_.find(node.name); sequence != sequences_.end()) {
      found_.sequences[static_cast<size_t>(sequence->second)] = rows;
    } else {
      return rows;  // a state
    }
    return true;
  }

  // Returns whether the value of a node without rows can be divided into rows.
  bool IsDivisible(const Node& node) const {
    return node.op == "Fill" || invariants_.contains(node.name);
  }

  bool VisitElementwise(const Node& node) {
    const Shape& shape = node.outputs[0].shape;
    for (Output input : node.inputs) {
      const Shape& own = ShapeOf(input);
      if (HasRows(input)) {
        if (own.rank() != shape.rank()) return false;  // broadcasting would move the rows
      } else if (own.rank() < shape.rank() || own.dim(0) == 1) {
        whole_.insert(input.node);
      } else if (IsDivisible(body_.node(input))) {
        divided_.insert(input.node);
      } else {
        return false;
      }
    }
    found_.work += kElementwiseWork * PerRow(shape);
    return true;
  }

  // Visits a product with weights, or a BiasAdd.
  bool VisitProduct(const Node& node) {
    if (!IsProduct(node) && node.op != "BiasAdd") return false;
    if (!HasRows(node.inputs[0]) || node.attributes.Get("transpose_a", false)) return false;
    for (size_t i = 1; i < node.inputs.size(); ++i) {
      if (HasRows(node.inputs[i])) return false;
      whole_.insert(node.inputs[i].node);
    }
    const double inner =
        IsProduct(node) ? static_cast<double>(ShapeOf(node.inputs[0]).dim(-1)) : kElementwiseWork;
    found_.work += inner * PerRow(node.outputs[0].shape);
    return true;
  }

  double PerRow(const Shape& shape) const {
    return static_cast<double>(shape.num_elements()) /
           static_cast<double>(std::max<int64_t>(1, found_.rows));
  }

  const ScanForm& form_;
  const Graph& body_;
  std::map<std::string, int> sequences_;
  std::map<std::string, size_t> invariants_;
  std::set<int> divided_;  // nodes without rows that are read by row
  std::set<int> whole_;    // nodes that are read as a whole
  ScanRows found_;
};

}  // namespace

std::optional<ScanRows> FindScanRows(const ScanForm& form) {
  return RowFinder(form).Run();
}

Graph BodyOfRows(const Graph& body, const ScanRows& rows, int64_t count) {
  const auto shortened = [&](const Shape& shape) {
    std::vector<int64_t> dims = shape.dims();
    dims[0] = count;
    return Shape(std::move(dims));
  };
  Graph part;
  for (size_t id = 0; id < body.nodes().size(); ++id) {
    Node node = body.nodes()[id];
    if (rows.nodes[id]) {
      node.outputs[0].shape = shortened(node.outputs[0].shape);
      if (const Shape* shape = node.attributes.Find<Shape>("shape"))
        node.attributes.Set("shape", shortened(*shape));
    }
    part.Append(std::move(node));
  }
  for (const graph::Fetch& fetch : body.fetches()) part.AddFetch(fetch);
  return part;
}

int64_t LoopsOf(const ScanRows& rows, size_t weights) {
  const int64_t least = weights > kLargeWeights ? kLeastRowsOfLargeWeights : kLeastRows;
  const double by_work = static_cast<double>(rows.rows) * rows.work / kLeastWork;
  const int64_t most = by_work < kMostLoops ? static_cast<int64_t>(by_work) : kMostLoops;
  return std::clamp<int64_t>(rows.rows / least, 1, std::max<int64_t>(1, most));
}

}  // namespace tfjob::exec
