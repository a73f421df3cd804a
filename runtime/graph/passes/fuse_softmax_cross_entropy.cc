#include <string>

#include "runtime/graph/passes.h"
#include "runtime/graph/passes/rewriter.h"

namespace tfjob::graph {
namespace {

constexpr char kDense[] = "SoftmaxCrossEntropyWithLogits";
constexpr char kSparse[] = "SparseSoftmaxCrossEntropyWithLogits";

// Keras' backend epsilon. Clipping to [epsilon, 1 - epsilon] only protects the logarithm, so the
// loss may be computed from the logits instead. Clipping to other bounds is assumed to be
// intentional.
constexpr double kEpsilon = 1e-7;

bool IsKerasClip(const Node& node) {
  return node.op == "ClipByValue" && node.attributes.Get("clip_value_min", 0.0) == kEpsilon &&
         node.attributes.Get("clip_value_max", 0.0) == 1 - kEpsilon;
}

// Returns the logits x if the value is log(softmax(x)), log(clip(softmax(x))) or logsoftmax(x), and
// otherwise an invalid Output.
Output LogitsOfLog(const Graph& graph, Output output) {
  const Node& log = graph.node(output);
  if (log.op == "LogSoftmax") return log.inputs[0];
  if (log.op != "Log") return Output();
  Output inner = log.inputs[0];
  if (IsKerasClip(graph.node(inner))) inner = graph.node(inner).inputs[0];
  return graph.node(inner).op == "Softmax" ? graph.node(inner).inputs[0] : Output();
}

struct Match {
  Output logits;
  Output labels;
};

// Matches Σ labels · log(softmax(logits)) over the last axis of matrices, with the factors
// in either order.
Match MatchSumOfProducts(const Graph& graph, Output output) {
  const Node& sum = graph.node(output);
  if (sum.op != "Sum" ||
      sum.attributes.Get("axes", std::vector<int64_t>()) != std::vector<int64_t>{1} ||
      sum.attributes.Get("keep_dims", false) || graph.type(sum.inputs[0]).shape.rank() != 2) {
    return {};
  }
  const Node& product = graph.node(sum.inputs[0]);
  if (product.op != "Mul") return {};
  for (size_t i = 0; i < 2; ++i) {
    const Output logits = LogitsOfLog(graph, product.inputs[i]);
    const Output labels = product.inputs[1 - i];
    if (logits.valid() && graph.type(logits) == graph.type(labels)) return {logits, labels};
  }
  return {};
}

}  // namespace

Graph FuseSoftmaxCrossEntropy(const Graph& graph) {
  Rewriter rewriter(graph);
  for (int id = 0; id < static_cast<int>(graph.nodes().size()); ++id) {
    const Node& node = graph.node(id);
    // Keras passes log-probabilities to the op that expects logits. This is correct, because the
    // softmax of log-probabilities returns the probabilities.
    const bool loss_op = node.op == kDense || node.op == kSparse;
    const Output logits = loss_op ? LogitsOfLog(graph, node.inputs[0]) : Output();
    if (logits.valid()) {
      const Output fused = rewriter.Append(
          id, node.op, {rewriter.Now(logits), rewriter.Now(node.inputs[1])}, node.attributes);
      rewriter.Replace({id, 0}, fused);
      rewriter.Replace({id, 1}, {fused.node, 1});
      continue;
    }
    const Match match = node.op == "Neg" ? MatchSumOfProducts(graph, node.inputs[0]) : Match();
    if (match.logits.valid()) {
      rewriter.Replace(
          {id, 0}, rewriter.Append(id, kDense,
                                   {rewriter.Now(match.logits), rewriter.Now(match.labels)}, {}));
    } else {
      rewriter.Copy(id);
    }
  }
  return std::move(rewriter).Finish();
}

}  // namespace tfjob::graph
