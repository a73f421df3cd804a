// Carries out one device's share of synchronous data-parallel steps. Computes contributions on a
// part of the global batch, reduces them over all ranks of a communicator, and applies the result
// to this device's copy of the variables. Before and after every step, the variables of all ranks
// are bit-identical.
//
//   RETURN_IF_ERROR(replica->Connect(*communicator));        // once per communicator
//   RETURN_IF_ERROR(replica->Compute(batch, step, shares));  // forward, backward
//   RETURN_IF_ERROR(replica->Reduce());                      // all contributions have arrived
//   ASSIGN_OR_RETURN(const bool applied, replica->Apply(step, totals));
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/collectives/communicator.h"
#include "runtime/data/pipeline.h"
#include "runtime/state/snapshot_copy.h"
#include "runtime/strategy/gradient_buckets.h"
#include "runtime/strategy/model/local_state.h"
#include "runtime/strategy/model/model_program.h"
#include "runtime/strategy/model/number_check.h"
#include "runtime/strategy/model/rate_of_run.h"
#include "runtime/strategy/model/updates.h"
#include "runtime/strategy/strategy_options.h"

namespace tfjob::strategy {

// How the examples of a step are distributed among the ranks.
struct Shares {
  int64_t examples = 0;             // of all ranks; above 0
  int64_t ranks_with_examples = 0;  // above 0
};

// Owned by one thread.
class Replica {
 public:
  // Does not use options.provide_state. Returns Unimplemented, with a message that says what to
  // change, if the model or the optimizer does not support all-reduce. `bytes_per_pack`: see
  // PlanBuckets.
  static StatusOr<std::unique_ptr<Replica>> Create(StrategyOptions options, int64_t bytes_per_pack);
  // Creates a replica without variables of its own. The replica reads the variables of `owner`,
  // which must outlive it. Such a replica can carry out Compute and Reduce, but not Apply, and has
  // no state.
  static StatusOr<std::unique_ptr<Replica>> CreateReader(StrategyOptions options,
                                                         int64_t bytes_per_pack, Replica& owner);

  // Returns the settings that must be equal on all ranks, one per line: "NAME: VALUE".
  const std::string& agreement() const { return agreement_; }

  // All ranks of the communicator must call Connect. Replaces an earlier connection. The
  // communicator must outlive the connection.
  Status Connect(collectives::Communicator& communicator);
  void Disconnect() { buckets_->Disconnect(); }

  // The next three functions carry out a step. Nothing is written to the variables before Apply.
  // After an error, the step may be repeated with another communicator.
  //
  // Computes the contributions of this rank's part of the batch, which may be empty. The exchange
  // starts while the contributions are being computed. `step` is the number of updates before this
  // one. If the program fails, aborts the communicator and returns the program's error. If the
  // program has ended early because the communicator failed during one of its exchanges, returns
  // OK; Reduce then returns the communicator's error.
  Status Compute(const data::Batch& batch, int64_t step, const Shares& shares);
  // Returns whether the program that Compute needs for this batch exists. Compile creates it; if
  // that fails, Compute returns the error.
  bool IsCompiled(const data::Batch& batch) { return batch.size() == 0 || programs_.Has(batch); }
  void Compile(const data::Batch& batch) { (void)programs_.For(batch); }
  // Waits until the contributions of all ranks have been reduced. Returns the communicator's error.
  Status Reduce();
  // Applies the reduced contributions, and adds the loss and the metrics of all ranks to `totals`.
  // Returns false if the batch is skipped because its numbers are not finite, and state::RunFailure
  // if the run must stop. All ranks get the same result.
  StatusOr<bool> Apply(int64_t step, MetricTotals& totals);

  // Returns whether all variables and slots belong to the same step. Returns false before Load or
  // Broadcast has filled them, and after Load, Broadcast or Apply has failed midway.
  bool has_state() const { return has_state_; }
  // Drops the state.
  void Forget() { has_state_ = false; }
  // Returns FailedPrecondition if there is no state.
  Status CheckState() const;
  // See Strategy::BeginSnapshot. Call between steps. Propagates the error from CheckState.
  StatusOr<state::SnapshotCopy> BeginSnapshot(int64_t step, std::string ledger);
  // Sets the learning rate of the next Apply, at the given step (Strategy::SetLearningRate). All
  // ranks must use the same rate.
  Status SetLearningRate(double rate, int64_t step) { return rate_.Set(rate, step); }
  // Takes over the rate that another rank has announced; nullopt for the optimizer's own rate.
  void TakeLearningRate(const std::optional<state::LearningRate>& rate) { rate_.Take(rate); }
  const std::optional<state::LearningRate>& learning_rate() const { return rate_.get(); }
  state::Snapshot Memory() { return state_->Memory(); }
  // Fills variables and slots. Returns InvalidArgument if the snapshot does not match the
  // definition.
  Status Load(const state::Snapshot& snapshot);
  // All ranks must call Broadcast, after Connect. Sends the state of `root`, which consists of the
  // variables, the slots, the totals of the last applied step, the scale of the loss, the learning
  // rate, and the number of batches that were skipped in a row. A rank takes over the state if
  // `receive` is set; otherwise its state must already equal that of `root`. After an error, a
  // receiving rank has no state.
  Status Broadcast(collectives::Communicator& communicator, int root, bool receive);
  // Adds to `totals` the loss and the metrics of all ranks in the last applied step, as Apply does.
  void AddLastTotals(MetricTotals& totals) const { AddTotals(last_words_, totals); }

 private:
  Replica(StrategyOptions options, Replica* owner);
  static StatusOr<std::unique_ptr<Replica>> Make(StrategyOptions options, int64_t bytes_per_pack,
                                                 Replica* owner);
  Status CheckModel() const;
  StatusOr<uint64_t> GraphDigest() const;
  Status Prepare(int64_t bytes_per_pack);
  Status PrepareVariables();
  // Compiles the updates again if the learning rate has changed, because it is a constant in them.
  Status UseRate();
  Status BroadcastVariables(collectives::Communicator& communicator, int root, bool receive);
  Status BroadcastCounters(collectives::Communicator& communicator, int root, bool receive);
  static void AddTotals(const std::vector<double>& words, MetricTotals& totals);

  const optimizer::Clipping clipping_;  // of reduced gradients
  StrategyOptions options_;             // with the learning rate that the updates use
  RateOfRun rate_;
  variables::VariableStore own_store_;
  variables::VariableStore& store_;  // contains the variables: own_store_, or the owner's store
  NumberCheck check_;
  std::unique_ptr<GradientBuckets> buckets_;  // outlives the programs, whose exchanges use it
  ProgramCache programs_;
  // If true, the programs multiply the gradients by the weight of this rank; otherwise, buckets_
  // does.
  bool program_weights_ = false;
  bool keeps_ = false;  // the programs keep gradients in the device's memory
  std::string agreement_;
  std::unique_ptr<UpdatesByRows> updates_;  // null if the replica has no variables
  std::optional<LocalState> state_;
  state::LossScale own_loss_scale_;        // used only if the model computes in float16
  state::LossScale& loss_scale_;           // own_loss_scale_, or that of the owner
  const ModelProgram* program_ = nullptr;  // for the step in progress; null if it has no examples
  MetricTotals own_;                       // for this rank's part of the batch
  // The number of examples, the sum of the losses, and the sums of the metrics, over all ranks:
  // words_ for the step in progress, last_words_ for the last step that was applied.
  std::vector<double> words_, last_words_;
  bool has_state_ = false;
};

}  // namespace tfjob::strategy
