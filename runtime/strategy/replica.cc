#include "runtime/strategy/replica.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/base/fnv1a.h"
#include "runtime/base/version.h"
#include "runtime/strategy/loss_scaling.h"

namespace tfjob::strategy {
namespace {

// The number of bytes of a variable to broadcast in one operation.
constexpr size_t kBroadcastBytes = 1 << 20;

// Stands for the optimizer's own rate in a broadcast.
constexpr state::LearningRate kNoRate{.rate = -1};

// Changes the options so that gradients are clipped only after they have been reduced, and so that
// the program itself multiplies them by the rank's share of the examples. In float16, gradients
// that are smaller by this factor could underflow, so they are multiplied when they are float32
// again.
StrategyOptions OfReplica(StrategyOptions options) {
  options.definition.build.clipping = {};
  options.definition.build.weighted = !ScalesLoss(options.definition);
  options.definition.build.replica = options.replica;
  // A rank without examples uses the graph only to determine which contributions exist.
  options.definition.build.batch_size = std::max<int64_t>(options.definition.build.batch_size, 1);
  return options;
}

// Returns a count that another rank has sent as a floating-point number, or 0 if the number is not
// a valid count.
int64_t CountOf(double number, int64_t most) {
  return number >= 0 && number <= static_cast<double>(most) ? static_cast<int64_t>(number) : 0;
}

size_t CountSums(const ModelDefinition& definition) {
  size_t sums = 0;
  for (const model::MetricFetch& metric : model::MetricsOf(definition.model, definition.build))
    sums += static_cast<size_t>(metric.sums);
  return sums;
}

}  // namespace

Replica::Replica(StrategyOptions options, Replica* owner)
    : clipping_(options.definition.build.clipping),
      options_(OfReplica(std::move(options))),
      rate_(options_.definition.state.optimizer),
      own_store_(options_.device.row_stride, options_.device.runtime),
      store_(owner == nullptr ? own_store_ : owner->store_),
      check_(RuleOf(options_), "", options_.definition.state.variables, options_.device.pool),
      programs_(options_.definition, model::Mode::kTrain, /*with_updates=*/false, store_,
                options_.device),
      loss_scale_(owner == nullptr ? own_loss_scale_ : owner->loss_scale_) {}

StatusOr<std::unique_ptr<Replica>> Replica::Create(StrategyOptions options,
                                                   int64_t bytes_per_pack) {
  return Make(std::move(options), bytes_per_pack, nullptr);
}

StatusOr<std::unique_ptr<Replica>> Replica::CreateReader(StrategyOptions options,
                                                         int64_t bytes_per_pack, Replica& owner) {
  return Make(std::move(options), bytes_per_pack, &owner);
}

StatusOr<std::unique_ptr<Replica>> Replica::Make(StrategyOptions options, int64_t bytes_per_pack,
                                                 Replica* owner) {
  std::unique_ptr<Replica> replica(new Replica(std::move(options), owner));
  RETURN_IF_ERROR(replica->CheckModel());
  if (owner == nullptr) RETURN_IF_ERROR(replica->PrepareVariables());
  RETURN_IF_ERROR(replica->Prepare(bytes_per_pack));
  return replica;
}

Status Replica::CheckModel() const {
  for (const model::Objective& objective : options_.definition.build.objectives) {
    if (!objective.loss.sum) continue;
    return Unimplemented(
        "loss.reduction: sum is not supported when gradients are averaged over tasks or devices; "
        "use mean, and multiply optimizer.learning_rate by the number of examples per step");
  }
  return OkStatus();
}

// Returns a digest of the training graph without the batch size and the replica, in which ranks may
// differ.
StatusOr<uint64_t> Replica::GraphDigest() const {
  ModelDefinition common = options_.definition;
  common.build.replica = 0;
  ASSIGN_OR_RETURN(const model::BuiltGraph training,
                   BuildGraph(common, model::Mode::kTrain, /*batch_size=*/1,
                              /*with_updates=*/false));
  return Fnv1a().Add(training.graph.ToString()).hash();
}

Status Replica::PrepareVariables() {
  const ModelDefinition& definition = options_.definition;
  RETURN_IF_ERROR(CreateVariables(definition, store_));
  ASSIGN_OR_RETURN(updates_,
                   UpdatesByRows::Compile(definition, clipping_, store_, options_.device));
  ASSIGN_OR_RETURN(state_, LocalState::Find(definition.state, store_));
  return OkStatus();
}

Status Replica::UseRate() {
  double& compiled = options_.definition.state.optimizer.learning_rate;
  if (compiled == rate_.rate()) return OkStatus();
  compiled = rate_.rate();
  ASSIGN_OR_RETURN(updates_,
                   UpdatesByRows::Compile(options_.definition, clipping_, store_, options_.device));
  return OkStatus();
}

Status Replica::Prepare(int64_t bytes_per_pack) {
  const ModelDefinition& definition = options_.definition;
  ASSIGN_OR_RETURN(const BucketPlan plan,
                   PlanStep(definition, bytes_per_pack, options_.compression));
  ASSIGN_OR_RETURN(const uint64_t digest, GraphDigest());
  agreement_ = StrCat("program: ", kVersion, "\nmodel: ", digest,
                      "\noptimizer: ", PrintJson(optimizer::ToJson(definition.state.optimizer)),
                      "\nclipping: ", static_cast<int>(clipping_.kind), " ", clipping_.limit,
                      "\nseed: ", definition.seed,
                      "\non_non_finite: ", static_cast<int>(options_.on_non_finite),
                      "\nbuckets: ", Describe(plan), "\n");
  words_.resize(2 + CountSums(definition));
  last_words_.resize(words_.size());
  program_weights_ =
      definition.build.weighted &&
      std::ranges::all_of(plan.buckets, [](const Bucket& bucket) { return bucket.exchange < 0; });
  // A replica without variables does not apply the sums.
  const bool checks = check_.enabled() && updates_ != nullptr;
  buckets_ =
      std::make_unique<GradientBuckets>(plan, definition.variables.size(), words_.size(), checks);
  programs_.set_exchange(buckets_.get());
  programs_.set_places_contributions();
  return programs_.ForBatchSize(definition.build.batch_size).status();
}

// Gradients stay on the device if the communicator adds there, and if the program has already
// multiplied them by the weight of this rank.
Status Replica::Connect(collectives::Communicator& communicator) {
  device::DeviceRuntime* const own = options_.device.runtime.get();
  const bool keeps = program_weights_ && communicator.device() == own;
  if (keeps != keeps_) {
    keeps_ = keeps;
    programs_.set_keeps(keeps ? [this](int v) { return buckets_->SuitsDevice(v); }
                              : std::function<bool(int)>());
  }
  return buckets_->Connect(communicator, keeps ? own : nullptr);
}

Status Replica::Compute(const data::Batch& batch, int64_t step, const Shares& shares) {
  ENFORCE(shares.examples > 0 && shares.ranks_with_examples > 0, "a step with examples");
  program_ = nullptr;
  const double weight = static_cast<double>(batch.size()) / static_cast<double>(shares.examples);
  buckets_->Begin({.gradient = program_weights_ ? 1 : weight,
                   .assign = 1 / static_cast<double>(shares.ranks_with_examples)});
  if (batch.size() == 0) {
    buckets_->AddZeros();
    return OkStatus();
  }
  StatusOr<ModelProgram*> program = programs_.For(batch);
  Status status = program.status();
  if (status.ok()) {
    program_ = *program;
    (*program)->set_loss_scale(loss_scale_.scale);
    (*program)->set_loss_weight(weight);
    (*program)->PlaceContributions([&](int v) { return buckets_->MemoryOf(v); });
    status = (*program)->Run(batch, step, options_.definition.seed, [&](int v) {
      buckets_->Add(v, program_->Contribution(v), program_->Indices(v));
    });
  }
  if (buckets_->exchange_failed()) return OkStatus();
  if (!status.ok()) buckets_->Abandon(status);
  return status;
}

Status Replica::Reduce() {
  own_.examples = 0;
  own_.loss_sum = 0;
  std::ranges::fill(own_.metric_sums, 0.0);
  if (program_ != nullptr) program_->AddTotals(own_);
  words_[0] = static_cast<double>(own_.examples);
  words_[1] = own_.loss_sum;
  std::ranges::fill(words_.begin() + 2, words_.end(), 0.0);
  std::ranges::copy(own_.metric_sums, words_.begin() + 2);
  return buckets_->Finish(words_);
}

StatusOr<bool> Replica::Apply(int64_t step, MetricTotals& totals) {
  check_.Begin();
  for (size_t v = 0; v < options_.definition.variables.size(); ++v)
    check_.CheckedContribution(v, buckets_->Finite(static_cast<int>(v)));
  ASSIGN_OR_RETURN(const bool fine, check_.Verdict(words_[1], step + 1));
  // The loss itself is not scaled, so the scale cannot be the reason if the loss is not finite.
  if (ScalesLoss(options_.definition) && std::isfinite(words_[1]))
    loss_scale_ = loss_scale_.After(fine);
  if (!fine) return false;
  RETURN_IF_ERROR(UseRate());
  // Drop the state, because another device may have applied the step although this one could not.
  has_state_ = false;
  ASSIGN_OR_RETURN(Updates * updates,
                   updates_->For([this](int v) { return buckets_->ReducedRowCount(v); }));
  RETURN_IF_ERROR(updates->Run(step, [&](int v) {
    if (!buckets_->ByRows(v))
      return Updates::Input{.value = buckets_->Reduced(v), .on_device = buckets_->OnDevice(v)};
    const GradientRows::Rows rows = buckets_->ReducedRows(v, updates->rows_of(v));
    return Updates::Input{.value = rows.values, .indices = rows.indices};
  }));
  has_state_ = true;
  std::ranges::copy(words_, last_words_.begin());
  AddTotals(words_, totals);
  return true;
}

void Replica::AddTotals(const std::vector<double>& words, MetricTotals& totals) {
  totals.examples += CountOf(words[0], int64_t{1} << 53);
  totals.loss_sum += words[1];
  totals.metric_sums.resize(words.size() - 2);
  for (size_t i = 2; i < words.size(); ++i) totals.metric_sums[i - 2] += words[i];
}

Status Replica::CheckState() const {
  if (has_state_) return OkStatus();
  return FailedPrecondition(
      "the variables of this task are not those of one step, because an update, or the transfer "
      "of another task's variables, has not been completed");
}

StatusOr<state::SnapshotCopy> Replica::BeginSnapshot(int64_t step, std::string ledger) {
  RETURN_IF_ERROR(CheckState());
  state::Snapshot numbers{.global_step = step, .learning_rate = rate_.get()};
  numbers.ledger = std::move(ledger);
  if (ScalesLoss(options_.definition)) numbers.loss_scale = loss_scale_;
  return state_->BeginCopy(std::move(numbers), updates_->written());
}

Status Replica::Load(const state::Snapshot& snapshot) {
  RETURN_IF_ERROR(state::CheckFits(snapshot, options_.definition.state));
  has_state_ = false;
  RETURN_IF_ERROR(state_->Load(snapshot));
  loss_scale_ = snapshot.loss_scale.value_or(state::LossScale());
  rate_.Take(snapshot.learning_rate);
  check_.GoOnFrom(0);
  has_state_ = true;
  return OkStatus();
}

Status Replica::Broadcast(collectives::Communicator& communicator, int root, bool receive) {
  receive = receive && communicator.rank() != root;
  if (receive) has_state_ = false;
  RETURN_IF_ERROR(BroadcastVariables(communicator, root, receive));
  RETURN_IF_ERROR(BroadcastCounters(communicator, root, receive));
  // The broadcast has overwritten the buckets, whose padding must be zero.
  std::memset(buckets_->memory().data(), 0, buckets_->memory().size());
  if (receive) has_state_ = true;
  return OkStatus();
}

Status Replica::BroadcastVariables(collectives::Communicator& communicator, int root,
                                   bool receive) {
  const bool sends = communicator.rank() == root;
  const std::span<std::byte> memory = buckets_->memory();
  const size_t most = std::min(kBroadcastBytes, memory.size());
  for (const std::vector<variables::Variable*>& held : state_->held()) {
    for (variables::Variable* variable : held) {
      for (size_t done = 0; done < variable->num_bytes(); done += most) {
        const std::span<std::byte> part =
            memory.first(std::min(most, variable->num_bytes() - done));
        if (sends) RETURN_IF_ERROR(variable->CopyOut(done, part));
        RETURN_IF_ERROR(communicator.Broadcast(part, root));
        if (receive) RETURN_IF_ERROR(variable->CopyIn(done, part));
      }
      if (receive) variable->CountWrite();
    }
  }
  return OkStatus();
}

Status Replica::BroadcastCounters(collectives::Communicator& communicator, int root, bool receive) {
  std::vector<double> counters = last_words_;
  counters.push_back(loss_scale_.scale);
  counters.push_back(static_cast<double>(loss_scale_.good_steps));
  const state::LearningRate rate = rate_.get().value_or(kNoRate);
  counters.push_back(rate.rate);
  counters.push_back(static_cast<double>(rate.step));
  counters.push_back(check_.skipped_in_a_row());
  RETURN_IF_ERROR(communicator.Broadcast(std::as_writable_bytes(std::span(counters)), root));
  if (!receive) return OkStatus();
  std::copy_n(counters.begin(), last_words_.size(), last_words_.begin());
  const double* const scale = counters.data() + last_words_.size();
  const state::LossScale received{.scale = scale[0],
                                  .good_steps = CountOf(scale[1], state::kGoodStepsToGrow)};
  if (received.IsValid()) loss_scale_ = received;
  const state::LearningRate set{.rate = scale[2], .step = CountOf(scale[3], int64_t{1} << 53)};
  rate_.Take(set.IsValid() ? std::optional(set) : std::nullopt);
  check_.GoOnFrom(static_cast<int>(CountOf(counters.back(), kMaxSkippedInARow)));
  return OkStatus();
}

}  // namespace tfjob::strategy
