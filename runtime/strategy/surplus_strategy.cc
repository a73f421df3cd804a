#include "runtime/strategy/surplus_strategy.h"

#include <utility>
#include <vector>

#include "runtime/base/mutex.h"
#include "runtime/rpc/identity.h"

namespace tfjob::strategy {
namespace {

constexpr Duration kPollSurplus{100ms};

class Surplus : public Strategy {
 public:
  Surplus(TrainingTask task, Clock& clock) : task_(std::move(task)), clock_(clock) {}

  StatusOr<StepOutcome> Start() override {
    Duration next_report = clock_.Monotonic();
    while (!task_.stop_requested()) {
      const Duration now = clock_.Monotonic();
      if (now >= next_report) {
        next_report = now + kReportSurplus;
        Report();
      }
      MutexLock lock(mutex_);
      never_.WaitFor(mutex_, kPollSurplus);
    }
    return Cancelled(Name(), " has taken no part in the run");
  }

  StatusOr<StepOutcome> Step(const data::Batch&, MetricTotals&) override { return TakesNoPart(); }
  StatusOr<state::Snapshot> TakeSnapshot() override { return TakesNoPart(); }
  Status Leave() override { return OkStatus(); }
  Status Finish() override { return TakesNoPart(); }
  Status Fail(const Status&) override { return TakesNoPart(); }
  std::vector<state::PeerState> Peers() override { return {}; }

 private:
  std::string Name() const { return rpc::TaskName(task_.identity); }
  Status TakesNoPart() const { return FailedPrecondition(Name(), " takes no part in the run"); }
  void Report() const {
    const std::string limit = StrCat("strategy.max_replicas (", *task_.config.max_replicas, ")");
    task_.on_event({.kind = state::PeerEvent::Kind::kWaiting,
                    .peer = limit,
                    .address = "",
                    .message = StrCat("takes no part in the run, because ", Name(), " is beyond ",
                                      limit, ", which counts the chief: scale the job down")});
  }

  const TrainingTask task_;
  Clock& clock_;
  Mutex mutex_;
  CondVar never_;  // never notified
};

}  // namespace

std::unique_ptr<Strategy> MakeSurplus(TrainingTask task, Clock& clock) {
  return std::make_unique<Surplus>(std::move(task), clock);
}

}  // namespace tfjob::strategy
