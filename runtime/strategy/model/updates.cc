#include "runtime/strategy/model/updates.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace tfjob::strategy {
namespace {

// The maximum number of cached programs. Most jobs need two or three.
constexpr size_t kMostPrograms = 3;

}  // namespace

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
    feeds_[feed] = {.dtype = program_->feeds()[feed].type.dtype,
                    .bytes = input.value,
                    .on_device = input.on_device};
    if (indices_of_variable_[v] < 0) continue;
    feeds_[static_cast<size_t>(indices_of_variable_[v])] = exec::Feed::Of(input.indices);
  }
  return program_->Run(feeds_);
}

int64_t Updates::rows_of(int v) const {
  const int indices = indices_of_variable_[static_cast<size_t>(v)];
  if (indices < 0) return 0;
  return program_->feeds()[static_cast<size_t>(indices)].type.shape.num_elements();
}

StatusOr<std::unique_ptr<UpdatesByRows>> UpdatesByRows::Compile(const ModelDefinition& definition,
                                                                const optimizer::Clipping& clipping,
                                                                variables::VariableStore& store,
                                                                const exec::Device& device) {
  std::unique_ptr<UpdatesByRows> updates(new UpdatesByRows(definition, clipping, store, device));
  ASSIGN_OR_RETURN(const Updates* first, updates->ForExamples(1));
  updates->written_ = first->program().written();
  for (size_t v = 0; v < definition.variables.size(); ++v)
    updates->rows_of_example_.push_back(first->rows_of(static_cast<int>(v)));
  return updates;
}

StatusOr<Updates*> UpdatesByRows::For(absl::FunctionRef<int64_t(int)> rows) {
  uint64_t examples = 1;
  for (size_t v = 0; v < definition_.variables.size(); ++v) {
    const int64_t of_example = rows_of_example_[v];
    if (of_example == 0) continue;
    const int64_t count = rows(static_cast<int>(v));
    examples = std::max(examples, static_cast<uint64_t>((count + of_example - 1) / of_example));
  }
  ASSIGN_OR_RETURN(Updates * updates, ForExamples(static_cast<int64_t>(std::bit_ceil(examples))));
  for (size_t v = 0; v < definition_.variables.size(); ++v) {
    const int64_t room = updates->rows_of(static_cast<int>(v));
    if (room == 0 || rows(static_cast<int>(v)) <= room) continue;
    return Internal("the gradient of ", definition_.variables[v].name, " has ",
                    rows(static_cast<int>(v)), " rows: expected at most ", room, " of ", examples,
                    " examples");
  }
  return updates;
}

StatusOr<Updates*> UpdatesByRows::ForExamples(int64_t examples) {
  auto found = std::ranges::find(recent_, examples, &Entry::examples);
  if (found == recent_.end()) {
    ModelDefinition definition = definition_;
    definition.build.batch_size = examples;
    // Release the least recently used program before the new one allocates memory.
    if (recent_.size() == kMostPrograms) recent_.pop_back();
    ASSIGN_OR_RETURN(std::unique_ptr<Updates> updates,
                     Updates::Compile(definition, clipping_, store_, device_));
    recent_.push_back({examples, std::move(updates)});
    found = recent_.end() - 1;
  }
  std::rotate(recent_.begin(), found, found + 1);
  return recent_.front().updates.get();
}

}  // namespace tfjob::strategy
