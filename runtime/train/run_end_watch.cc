#include "runtime/train/run_end_watch.h"

#include <algorithm>

#include "runtime/progress/client.h"
#include "runtime/state/run_failure.h"
#include "runtime/train/log.h"

namespace tfjob::train {
namespace {

constexpr Duration kAskEvery = 2s;
constexpr Duration kChiefAnswerTime = 500ms;

// Returns whether `every` has passed since `last`. If so, sets `last` to `now`.
bool Again(Duration now, Duration every, std::optional<Duration>& last) {
  if (last && now - *last < every) return false;
  last = now;
  return true;
}

}  // namespace

RunEndWatch::RunEndWatch(TaskContext& context, Duration folder_every)
    : context_(context), folder_every_(folder_every) {
  const cluster::TfConfig& config = context.tf_config();
  const std::string& address = config.cluster.address(cluster::ChiefOf(config));
  if (!address.empty()) {
    chief_ = std::make_unique<progress::ProgressClient>(address, context.credentials().key);
  }
}

RunEndWatch::~RunEndWatch() = default;

std::optional<int64_t> RunEndWatch::Ended() {
  const Duration now = context_.clock().Monotonic();
  if (!end_ && Again(now, folder_every_, read_at_)) end_ = FromFolder();
  if (!end_ && Again(now, kAskEvery, asked_at_)) end_ = FromChief();
  return end_ ? std::optional<int64_t>(end_->step) : std::nullopt;
}

Status RunEndWatch::Failure() const {
  return end_ && !end_->failure.empty() ? state::RunFailure(end_->failure) : OkStatus();
}

std::optional<RunEnd> RunEndWatch::FromFolder() {
  const std::string& folder = context_.config().model_dir;
  if (folder.empty()) return std::nullopt;
  const StatusOr<std::optional<RunEnd>> marked = ReadRunEnd(folder, context_.run());
  if (marked.ok()) return *marked;
  if (folder_error_ != Message(marked.status())) {
    folder_error_ = Message(marked.status());
    kTrainLog.Warning("cannot read whether the run is over", {{"error", marked.status()}});
  }
  return std::nullopt;
}

std::optional<RunEnd> RunEndWatch::FromChief() {
  if (chief_ == nullptr) return std::nullopt;
  const StatusOr<progress::Progress> progress = chief_->Fetch(kChiefAnswerTime);
  if (!progress.ok()) return std::nullopt;
  if (!progress->run_end || progress->run_end->run != RunFingerprint(context_.run()))
    return FromEarlierRuns(*progress);
  return RunEnd{.step = progress->run_end->step, .failure = progress->run_end->failure};
}

std::optional<RunEnd> RunEndWatch::FromEarlierRuns(const progress::Progress& of_chief) const {
  const std::string own = RunFingerprint(context_.run());
  const auto found = std::ranges::find(of_chief.earlier_runs, own, &progress::RunEnd::run);
  if (found == of_chief.earlier_runs.end()) return std::nullopt;
  return RunEnd{.step = found->step, .failure = found->failure};
}

bool RunEndWatch::ChiefIsInLaterRun() {
  if (chief_ == nullptr) return false;
  const StatusOr<progress::Progress> progress = chief_->Fetch(kChiefAnswerTime);
  return progress.ok() && FromEarlierRuns(*progress).has_value();
}

}  // namespace tfjob::train
