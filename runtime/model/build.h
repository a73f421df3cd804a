// Builds the graph of a model, for one mode and one batch size: forward pass, loss, metrics,
// gradients and updates. The graphs of a model share their variables by name.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/graph/graph.h"
#include "runtime/model/loss.h"
#include "runtime/model/model.h"
#include "runtime/optimizer/clipping.h"
#include "runtime/optimizer/optimizer.h"

namespace tfjob::model {

// Names of feeds.
inline constexpr char kFeatures[] = "features";  // float32 [b, …]
inline constexpr char kLabels[] = "labels";      // kTrain, kEval
inline constexpr char kStep[] = "step";  // kTrain: int64 scalar, number of updates before this one
inline constexpr char kSeed[] = "seed";  // kTrain: int64 scalar, for dropout

// Names of fetches.
inline constexpr char kPrediction[] = "prediction";  // kEval, kPredict: float32 [b, …]
inline constexpr char kLoss[] = "loss";  // kTrain, kEval: float32 scalar, the minimised value
// kTrain, kEval: float32 scalar, the sum of the examples' losses. To get the exact mean over
// several batches, add up their sums and divide by the number of examples in all of them.
inline constexpr char kLossSum[] = "loss_sum";

enum class Mode { kTrain, kEval, kPredict };

struct BuildOptions {
  Mode mode = Mode::kTrain;
  int64_t batch_size = 1;
  Shape feature_shape;  // of one example, as in the data
  // Labels as the data provides them: int64 with shape [] (classes), float32 with shape [classes]
  // (one-hot) or [] (values).
  DType label_dtype = DType::kInt64;
  Shape label_shape;
  Loss loss;
  std::vector<Metric> metrics;
  int64_t replica = 0;  // kTrain: index among the tasks that share a seed, so that dropout differs
  // For kTrain. If set, the graph updates every trainable variable itself, with an ApplyOptimizer
  // op. Training on one device needs this. If unset, the graph has one fetch per gradient instead.
  std::optional<optimizer::Optimizer> optimizer;
  optimizer::Clipping clipping = {};  // kTrain: of the gradients, applied or fetched
};

// Returns the name of a gradient, as a fetch or a feed: "gradients/dense/kernel".
std::string GradientName(const std::string& variable);

struct GradientFetch {
  std::string variable;  // "dense/kernel"
  std::string fetch;     // "gradients/dense/kernel"
};
struct MetricFetch {
  Metric metric;
  std::string fetch;  // "accuracy_sum": Σ over the batch's examples, float32 scalar
};

struct BuiltGraph {
  graph::Graph graph;
  std::vector<VariableSpec> variables;  // in the order of Variables()
  std::vector<GradientFetch>
      gradients;  // kTrain without optimizer; ordered as they become ready: last layer first
  std::vector<MetricFetch> metrics;  // kTrain, kEval
  int64_t examples = 0;              // the batch size: the number of examples in each sum
};

// Builds the graph. Returns InvalidArgument if layers, loss, metrics and labels do not fit
// together. The message names the layer and the shapes.
StatusOr<BuiltGraph> Build(const Model& model, const BuildOptions& options);

// Builds a graph that only updates the trainable variables, with gradients that are fed. Its feeds
// are kStep and the gradients, by the names of their fetches in a graph without optimizer.
StatusOr<graph::Graph> BuildUpdates(const std::vector<VariableSpec>& variables,
                                    const optimizer::Optimizer& optimizer);

}  // namespace tfjob::model
