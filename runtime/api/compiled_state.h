// Defines the data of a CompiledModel, and functions that several of its members use. Private to
// this package.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/api/access.h"
#include "runtime/cluster/cluster.h"
#include "runtime/data/source.h"
#include "runtime/state/snapshot.h"
#include "runtime/strategy/model/metric_totals.h"
#include "runtime/strategy/model/model_definition.h"
#include "runtime/train/job/batch_columns.h"
#include "runtime/train/task.h"

namespace tfjob::api {

// Provides the newest values of a model whose variables are on devices, where each step changes
// them.
class LiveValues {
 public:
  virtual ~LiveValues() = default;
  // Returns the number of updates that the optimizer has made.
  virtual int64_t step() const = 0;
  // Returns a copy of the values.
  virtual StatusOr<std::shared_ptr<const state::Snapshot>> Take() = 0;
};

// A shared pointer that is not copied with its owner: it is null in each copy.
template <typename T>
class NotCopied {
 public:
  NotCopied() = default;
  NotCopied(const NotCopied&) {}
  NotCopied& operator=(const NotCopied&) = delete;

  T* get() const { return held_.get(); }
  const std::shared_ptr<T>& shared() const { return held_; }
  void set(std::shared_ptr<T> value) { held_ = std::move(value); }

 private:
  std::shared_ptr<T> held_;
};

class BatchTrainer;  // batch_trainer.h
class LiveModel;     // workspace.h

// A position in the order of the examples. Each pass has a different order.
struct DrawnBatches {
  int64_t batches = 0;
  int64_t per_pass = 0;  // the number of batches in a pass; 0 before the first batch
};

// The step of a model after Fit, and the step that Fit had planned to end at. The two differ if
// tasks with parameter servers have made a few steps more. All tasks plan the next Fit from the
// same step.
struct EndOfFit {
  int64_t step = 0, planned = 0;
};

struct CompiledData {
  std::shared_ptr<const SessionData> session;
  Model model;
  // The settings of the session and the CompileOptions, in the form of a training file without
  // data.
  config::TrainingConfig config;
  // The model's variables, and their values. Both are unset until the types of the inputs are
  // known. A snapshot is never modified, only replaced, so copies of this struct share it.
  std::optional<strategy::ModelDefinition> definition;
  mutable std::shared_ptr<const state::Snapshot> values;  // mutable, because Settle updates them
  DrawnBatches drawn;     // by Fit so far; an epoch that has started counts in full
  EndOfFit last_end;      // of the last Fit
  History history;        // of the last Fit, even if it failed
  bool training = false;  // Fit is running
  // The totals over the batches since the last ResetMetrics.
  strategy::MetricTotals on_batches;

  // The object that has the newest values; null if `values` are the newest.
  mutable NotCopied<LiveValues> newest;
  // In a job whose tasks take steps together: the values that are equal in all tasks, unless
  // `newest` has newer ones. Other values of the model are not known to be equal.
  mutable NotCopied<const state::Snapshot> common;
  NotCopied<BatchTrainer> trainer;  // for Step; null before the first call
  NotCopied<BatchTrainer> tester;   // for TestOnBatch; null before the first call
  NotCopied<LiveModel> live;        // the variables that functions use; null if there are none

  const model::Model& internal_model() const { return *Access::Data(model).model; }
  const StrategyData& strategy() const { return Access::Data(session->strategy); }

  // Creates the variables, unless they exist, with the values from the model's file or with initial
  // values.
  tfjob::Status Build(const std::vector<model::TensorType>& features);
  // Returns FailedPrecondition if Fit is running.
  tfjob::Status ExpectNoFit() const;
  // Updates `values` to the newest values.
  tfjob::Status Settle() const;
  // Calls ExpectNoFit, and then Settle.
  tfjob::Status ExpectIdle() const;
  // Calls ExpectIdle. Returns FailedPrecondition if the variables have no values.
  tfjob::Status ExpectBuilt() const;
};

// Returns whether the process is the only task of its job, or does not belong to a job.
bool IsAlone(const cluster::TfConfig& tf_config);

// Returns whether the variables of the job are on parameter servers.
inline bool HasServers(const cluster::TfConfig& tf_config) {
  return tf_config.cluster.size("ps") > 0;
}

constexpr int64_t kMostBatch = int64_t{1} << 24;
// Returns InvalidArgument unless the size is from 1 to kMostBatch.
tfjob::Status CheckBatchSize(const char* name, int64_t batch_size);

// Sets data.bucket_by_length, data.mask_tokens and data.augment. Returns InvalidArgument, with the
// key, if the options are incompatible, and returns any error of the layers.
tfjob::Status SetBatchKeys(const std::optional<BucketByLength>& buckets,
                           const std::optional<MaskTokens>& mask, const std::vector<Layer>& augment,
                           config::TrainingConfig& config);
// Returns the examples as a source for the model. Sets data.train or data.eval of `config`.
StatusOr<SourcePtr> OpenDataset(const Dataset& dataset, train::Split split,
                                const model::Model& model, config::TrainingConfig& config,
                                train::Extent extent = train::Extent::kAll);

// Returns the options of a task that trains or evaluates with this config.
train::TaskOptions TaskOptionsOf(const StrategyData& strategy, config::TrainingConfig config);
inline train::TaskOptions TaskOptionsOf(const CompiledData& state, config::TrainingConfig config) {
  return TaskOptionsOf(state.strategy(), std::move(config));
}

// Makes later calls, and files of the model, use the learning rate of the model's values, if a run
// has set one.
void UseRateOfValues(CompiledData& state);

// Returns the values of the variables, in their order.
std::vector<tfjob::Tensor> ValuesOf(const state::Snapshot& snapshot);
// Writes a file in the format of CompiledModel::Save.
tfjob::Status WriteModel(const std::string& path, const config::TrainingConfig& config,
                         const strategy::ModelDefinition& definition,
                         const state::Snapshot& values);

}  // namespace tfjob::api
