#include "runtime/augment/example_program.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "runtime/base/check.h"
#include "runtime/base/philox.h"
#include "runtime/exec/device.h"
#include "runtime/graph/builder.h"
#include "runtime/graph/ops.h"
#include "runtime/model/build.h"
#include "runtime/model/layer/layer.h"
#include "runtime/trace/trace.h"

namespace tfjob::augment {
namespace {

constexpr size_t kMostFeeds = 3;  // the example, the step and the seed

}  // namespace

StatusOr<graph::Graph> ExampleGraph(const model::Model& layers, const Shape& in, bool training) {
  graph::Builder b;
  const graph::Output example =
      Placeholder(b, model::kFeatures, DType::kFloat32, model::Batched(1, in));
  model::LayerCall call{.b = b, .inputs = {example}, .training = training};
  if (training) {
    call.step = Placeholder(b, model::kStep, DType::kInt64, {});
    call.seed = Placeholder(b, model::kSeed, DType::kInt64, {});
  }
  const std::vector<graph::Output> outputs = Forward(layers, call);
  if (b.ok()) {
    if (call.output_masks && call.output_masks->at(0).valid()) {
      return InvalidArgument("expected layers that return no mask, which the model would not see; ",
                             "move the layer that makes the mask, such as Masking, to the model");
    }
    if (!call.penalties.empty()) {
      return InvalidArgument("expected layers that do not add to the loss; move the layer that ",
                             "does, such as ActivityRegularization, to the model");
    }
    b.AddFetch(model::kPrediction, outputs[0]);
  }
  return std::move(b).Finish();
}

StatusOr<std::unique_ptr<ExampleProgram>> ExampleProgram::Create(const graph::Graph& graph) {
  std::unique_ptr<ExampleProgram> made(new ExampleProgram());
  ASSIGN_OR_RETURN(made->program_, exec::Compile(graph, made->store_, exec::CpuDevice()));
  ENFORCE(made->program_->feeds().size() <= kMostFeeds, "the placeholders of ExampleGraph");
  return made;
}

Status ExampleProgram::Run(const RandomKey& key, std::span<const float> from, std::span<float> to) {
  // The step is the index of the example. Random ops use only the lower half of the step, so
  // combine the upper half of the index with the seed.
  const auto upper = static_cast<uint64_t>(key.example) >> 32;
  const auto seed =
      static_cast<int64_t>(upper == 0 ? key.seed : PhiloxKey(key.seed + upper, "examples"));
  const trace::Paused paused;  // these ops are not part of the model's step
  std::array<exec::Feed, kMostFeeds> feeds;
  const auto feed = [&](const char* name, const exec::Feed& value) {
    const int at = program_->FindFeed(name);
    if (at >= 0) feeds[static_cast<size_t>(at)] = value;  // otherwise, no op uses the feed
  };
  feed(model::kFeatures, exec::Feed::Of(from));
  feed(model::kStep, exec::Feed::Of(key.example));
  feed(model::kSeed, exec::Feed::Of(seed));
  RETURN_IF_ERROR(program_->Run(std::span(feeds).first(program_->feeds().size())));
  std::ranges::copy(program_->Fetch<float>(0), to.begin());
  return OkStatus();
}

}  // namespace tfjob::augment
