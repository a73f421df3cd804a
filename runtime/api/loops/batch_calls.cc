// Implements the calls that train and test on single batches.
#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "runtime/api/loops/batch_form.h"
#include "runtime/api/loops/batch_trainer.h"
#include "runtime/api/loops/task_group.h"
#include "runtime/api/loops/workspace.h"
#include "runtime/api/session.h"
#include "runtime/train/evaluation.h"

namespace tfjob::api {
namespace {

void AddBatch(const strategy::MetricTotals& batch, strategy::MetricTotals& totals) {
  // The number of sums has changed if only `totals` or only `batch` has sample weights. In this
  // case, start over.
  if (totals.metric_sums.size() != batch.metric_sums.size()) totals = {};
  totals.metric_sums.resize(batch.metric_sums.size());
  totals.loss_sum += batch.loss_sum;
  totals.examples += batch.examples;
  for (size_t i = 0; i < batch.metric_sums.size(); ++i)
    totals.metric_sums[i] += batch.metric_sums[i];
}

struct BatchCall {
  const char* name;  // "Step"
  CompiledData& model;
  NotCopied<BatchTrainer>& holder;
  const Batch& batch;
  const ClassWeights& class_weight;
  tfjob::Status (BatchTrainer::*prepare)(CompiledData&, const Batch&);
};

// Returns the trainer of the call, prepared. Replaces the trainer first if it does not accept
// batches of this form.
StatusOr<BatchTrainer*> ReadyTrainer(const BatchCall& call, bool together) {
  CompiledData& model = call.model;
  RETURN_IF_ERROR(model.ExpectNoFit());
  BatchTrainer* const held = call.holder.get();
  if (held == nullptr || !held->Takes(model, call.batch, call.class_weight)) {
    RETURN_IF_ERROR(model.Settle());
    ASSIGN_OR_RETURN(auto made,
                     BatchTrainer::Create(model, call.batch, call.class_weight, together));
    call.holder.set(std::move(made));
  }
  BatchTrainer* const trainer = call.holder.get();
  RETURN_IF_ERROR((trainer->*call.prepare)(model, call.batch));
  return trainer;
}

StatusOr<steps::Announcement> DescribeBatchCall(const BatchCall& call,
                                                const BatchTrainer& trainer) {
  const GroupStrategy* const strategy = trainer.group_strategy();
  steps::Announcement made{.steps = {StepsToAnnounce(call.model)},
                           .examples = trainer.examples(),
                           .connects = strategy != nullptr && !strategy->connected()};
  ASSIGN_OR_RETURN(made.digest, trainer.Digest());
  return made;
}

struct CallTogether {
  BatchTrainer* trainer = nullptr;
  steps::Agreed agreed;
};

// Prepares the call in all tasks. Afterwards, the model has the same values in all of them.
StatusOr<CallTogether> BeginCall(const BatchCall& call, steps::StepGroup& group) {
  const StatusOr<BatchTrainer*> trainer = ReadyTrainer(call, /*together=*/true);
  StatusOr<steps::Announcement> own = trainer.ok()
                                          ? DescribeBatchCall(call, **trainer)
                                          : StatusOr<steps::Announcement>(trainer.status());
  if (!own.ok()) own = steps::Announcement{.error = own.status()};
  own->call =
      StrCat(call.name, " of model ", call.model.model.name(), " (", FormOf(call.batch), ")");
  ASSIGN_OR_RETURN(steps::Agreed agreed, group.Announce(*own));
  if (agreed.sends[0]) RETURN_IF_ERROR(ShareValues(call.model, group));
  if (agreed.connects) RETURN_IF_ERROR((*trainer)->group_strategy()->Connect(group));
  return CallTogether{*trainer, std::move(agreed)};
}

StatusOr<strategy::MetricTotals> StepTogether(const BatchCall& call, steps::StepGroup& group) {
  ASSIGN_OR_RETURN(const CallTogether made, BeginCall(call, group));
  made.trainer->group_strategy()->set_shares(
      {.examples = made.agreed.examples, .ranks_with_examples = made.agreed.tasks_with_examples});
  return made.trainer->TakeStep(call.model);
}

// Sums the totals of all tasks. If a task has failed, returns its error there, and Aborted in the
// others.
StatusOr<strategy::MetricTotals> TestTogether(const BatchCall& call, steps::StepGroup& group) {
  ASSIGN_OR_RETURN(const CallTogether made, BeginCall(call, group));
  StatusOr<strategy::MetricTotals> own = made.trainer->Test(call.model);
  const size_t sums = own.ok() ? own->metric_sums.size() : made.trainer->sums();
  const auto ranks = static_cast<size_t>(group.size());
  std::vector<double> words(ranks + 1 + sums);
  words[static_cast<size_t>(group.rank())] = own.ok() ? 0 : 1;
  if (own.ok()) {
    words[ranks] = own->loss_sum;
    std::ranges::copy(own->metric_sums, words.begin() + static_cast<int64_t>(ranks) + 1);
  }
  RETURN_IF_ERROR(group.Check(
      group.communicator().AllReduce(std::as_writable_bytes(std::span(words)),
                                     tfjob::DType::kFloat64, collectives::Reduction::kSum)));
  RETURN_IF_ERROR(own.status());
  for (size_t rank = 0; rank < ranks; ++rank) {
    if (words[rank] == 0) continue;
    return Aborted(group.task(static_cast<int>(rank)), " has failed in ", call.name,
                   "; its log contains the error");
  }
  return strategy::MetricTotals{
      .loss_sum = words[ranks],
      .metric_sums = {words.begin() + static_cast<int64_t>(ranks) + 1, words.end()},
      .examples = made.agreed.examples};
}

StatusOr<strategy::MetricTotals> StepAlone(const BatchCall& call) {
  ASSIGN_OR_RETURN(BatchTrainer * trainer, ReadyTrainer(call, /*together=*/false));
  return trainer->TakeStep(call.model);
}

StatusOr<strategy::MetricTotals> TestAlone(const BatchCall& call) {
  ASSIGN_OR_RETURN(BatchTrainer * trainer, ReadyTrainer(call, /*together=*/false));
  return trainer->Test(call.model);
}

// Makes the call, alone or together with the other tasks. Adds the result to the totals since
// ResetMetrics.
StatusOr<strategy::MetricTotals> MakeCall(const BatchCall& call, const auto& alone,
                                          const auto& together) {
  ASSIGN_OR_RETURN(TaskGroup * group, call.model.session->workspace->Group(call.model));
  const auto make = [&]() -> StatusOr<strategy::MetricTotals> {
    if (group == nullptr) return alone(call);
    MutexLock turn(group->mutex());
    return together(call, group->steps());
  };
  ASSIGN_OR_RETURN(strategy::MetricTotals totals, make());
  AddBatch(totals, call.model.on_batches);
  return totals;
}

StatusOr<strategy::MetricTotals> TrainOn(const char* name, CompiledData& model, const Batch& batch,
                                         const ClassWeights& class_weight) {
  return MakeCall({name, model, model.trainer, batch, class_weight, &BatchTrainer::PrepareStep},
                  StepAlone, StepTogether);
}

StatusOr<BatchReport> StepOn(CompiledData& model, const Batch& batch,
                             const ClassWeights& class_weight) {
  ASSIGN_OR_RETURN(const strategy::MetricTotals totals,
                   TrainOn("Step", model, batch, class_weight));
  const BatchTrainer& trainer = *model.trainer.get();
  return BatchReport{.loss = totals.loss(),
                     .metrics = Metrics(train::NamedValues(trainer.definition(), totals)),
                     .examples = totals.examples,
                     .step = trainer.step()};
}

StatusOr<Metrics> TrainAndReport(CompiledData& model, const Batch& batch,
                                 const ClassWeights& class_weight) {
  RETURN_IF_ERROR(TrainOn("TrainOnBatch", model, batch, class_weight).status());
  return Metrics(train::NamedValues(model.trainer.get()->definition(), model.on_batches));
}

StatusOr<Metrics> TestAndReport(CompiledData& model, const Batch& batch) {
  const ClassWeights none;
  RETURN_IF_ERROR(
      MakeCall({"TestOnBatch", model, model.tester, batch, none, &BatchTrainer::PrepareTest},
               TestAlone, TestTogether)
          .status());
  return Metrics(train::NamedValues(model.tester.get()->definition(), model.on_batches));
}

}  // namespace

Result<BatchReport> CompiledModel::Step(const Batch& batch, const ClassWeights& class_weight) {
  return ToPublic(StepOn(*data_, batch, class_weight));
}

Result<Metrics> CompiledModel::TrainOnBatch(const Batch& batch, const ClassWeights& class_weight) {
  return ToPublic(TrainAndReport(*data_, batch, class_weight));
}

Result<Metrics> CompiledModel::TestOnBatch(const Batch& batch) {
  return ToPublic(TestAndReport(*data_, batch));
}

void CompiledModel::ResetMetrics() {
  data_->on_batches = {};
}

}  // namespace tfjob::api
