#include "runtime/strategy/updates.h"

#include <algorithm>

namespace tfjob::strategy {

StatusOr<std::unique_ptr<Updates>> Updates::Compile(const ModelDefinition& definition,
                                                    const optimizer::Clipping& clipping,
                                                    variables::VariableStore& store,
                                                    const exec::Device& device) {
  ASSIGN_OR_RETURN(const model::BuiltGraph training,
                   BuildGraph(definition, model::Mode::kTrain, definition.build.batch_size,
                              /*with_updates=*/false));
  ASSIGN_OR_RETURN(const graph::Graph graph,
                   model::BuildUpdates(training, definition.state.optimizer, clipping));
  std::unique_ptr<Updates> updates(new Updates());
  ASSIGN_OR_RETURN(updates->program_, exec::Compile(graph, store, device));
  updates->feeds_.resize(updates->program_->feeds().size());
  updates->feed_of_variable_.assign(definition.variables.size(), -1);
  updates->indices_of_variable_.assign(definition.variables.size(), -1);
  for (const model::Contribution& contribution : training.contributions) {
    const auto spec =
        std::ranges::find(definition.variables, contribution.variable, &model::VariableSpec::name);
    const auto v = static_cast<size_t>(spec - definition.variables.begin());
    updates->feed_of_variable_[v] = updates->program_->FindFeed(contribution.fetch);
    updates->indices_of_variable_[v] = updates->program_->FindFeed(contribution.indices);
  }
  return updates;
}

Status Updates::Run(int64_t step, absl::FunctionRef<Input(int)> input_of) {
  step_ = step;
  feeds_[static_cast<size_t>(program_->FindFeed(model::kStep))] = exec::Feed::Of(step_);
  for (size_t v = 0; v < feed_of_variable_.size(); ++v) {
    if (feed_of_variable_[v] < 0) continue;
    const Input input = input_of(static_cast<int>(v));
    const auto feed = static_cast<size_t>(feed_of_variable_[v]);
    feeds_[feed] = {.dtype = program_->feeds()[feed].type.dtype, .bytes = input.value};
    if (indices_of_variable_[v] < 0) continue;
    feeds_[static_cast<size_t>(indices_of_variable_[v])] = exec::Feed::Of(input.indices);
  }
  return program_->Run(feeds_);
}

}  // namespace tfjob::strategy
