// Trains and evaluates a compiled model on single batches of arrays. Private to this package.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/api/batch.h"
#include "runtime/api/compiled_state.h"
#include "runtime/api/loops/group_strategy.h"
#include "runtime/data/pipeline.h"
#include "runtime/optimizer/optimizer.h"
#include "runtime/strategy/model/model_program.h"
#include "runtime/strategy/strategy.h"
#include "runtime/train/job/batch_columns.h"
#include "runtime/train/task.h"

namespace tfjob::api {

using ClassWeights = std::map<int64_t, double>;

// Contains the strategy and the programs for one form of batches, one set of class weights and one
// optimizer. Batches of the same form have the same arrays, with examples of the same types and
// shapes. Owned by one thread.
class BatchTrainer : public LiveValues {
 public:
  // Creates the model's variables, unless they exist. With `together`, the trainer takes steps
  // together with the other tasks of the job, and accepts batches without examples. If the data
  // are invalid, returns the same errors as Fit.
  static StatusOr<std::shared_ptr<BatchTrainer>> Create(CompiledData& model, const Batch& batch,
                                                        const ClassWeights& class_weight,
                                                        bool together);

  // Returns whether the trainer can train or test on the batch.
  bool Takes(const CompiledData& model, const Batch& batch, const ClassWeights& class_weight) const;

  // Reads the batch, and prepares a step or a test on it. If it returns an error, the model has not
  // changed.
  tfjob::Status PrepareStep(CompiledData& model, const Batch& batch);
  tfjob::Status PrepareTest(CompiledData& model, const Batch& batch);
  // TakeStep takes one training step from the newest values of the model, and returns the totals of
  // the batch over all tasks. Test evaluates the model's values, and returns the totals of this
  // task's batch. If they return an error, the model has not changed.
  StatusOr<strategy::MetricTotals> TakeStep(CompiledData& model);
  StatusOr<strategy::MetricTotals> Test(CompiledData& model);

  // Returns the number of MetricTotals::metric_sums.
  size_t sums() const;
  int64_t examples() const { return batch_.size(); }  // of the last batch that was prepared
  // Returns a digest of the properties that must be equal in all tasks. Call after PrepareStep or
  // PrepareTest.
  StatusOr<uint64_t> Digest() const;
  // Returns the strategy of steps that several tasks take together; null before PrepareStep, or if
  // this task takes steps alone.
  GroupStrategy* group_strategy() const { return group_strategy_; }

  const strategy::ModelDefinition& definition() const { return definition_; }
  int64_t step() const override { return step_; }
  StatusOr<std::shared_ptr<const state::Snapshot>> Take() override;

 private:
  explicit BatchTrainer(train::TaskOptions task);
  tfjob::Status MakeStrategy(const CompiledData& model);
  tfjob::Status MakeEvaluation();
  // Reads the examples of the batch into batch_.
  tfjob::Status Read(const CompiledData& model, const Batch& batch);
  tfjob::Status Load(const std::shared_ptr<const state::Snapshot>& values);
  // Takes the newest values from the strategy after an error, and then destroys the strategy.
  void Reset(CompiledData& model);

  train::TaskContext context_;
  bool together_ = false;
  std::string form_;
  double scale_ = 1;  // the scale of the batches
  ClassWeights class_weight_;
  optimizer::Optimizer optimizer_;  // a callback of Fit may change the learning rate of the model
  strategy::ModelDefinition definition_;
  std::vector<tfjob::data::Column> columns_;
  tfjob::data::Batch batch_;  // the examples, in the form that the programs read
  std::unique_ptr<strategy::Strategy> strategy_;
  GroupStrategy* group_strategy_ = nullptr;          // strategy_, if it is one
  std::unique_ptr<variables::VariableStore> store_;  // for evaluation; null before first use
  std::unique_ptr<strategy::ProgramCache> programs_;
  // The values that the strategy and the evaluation, respectively, have last loaded or returned.
  std::shared_ptr<const state::Snapshot> loaded_, evaluated_;
  int64_t step_ = 0;
};

}  // namespace tfjob::api
