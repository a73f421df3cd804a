// Implements the role of a ps task.
#include <algorithm>
#include <atomic>
#include <thread>

#include "runtime/base/stop.h"
#include "runtime/base/thread_pool.h"
#include "runtime/ps/server/server.h"
#include "runtime/rpc/server.h"
#include "runtime/train/log.h"
#include "runtime/train/run_end_watch.h"
#include "runtime/train/task.h"

namespace tfjob::train {
namespace {

constexpr Duration kForever = 24h;
constexpr Duration kAskChiefEvery = 2s;

void Log(const state::PeerEvent& event) {
  using Kind = state::PeerEvent::Kind;
  if (event.kind == Kind::kStuck || event.kind == Kind::kEnding) {
    kServerLog.Warning(event.message, {{"peer", event.peer}});
  } else {
    kServerLog.Info(event.message, {{"peer", event.peer}});
  }
}

// Shuts the server down in an orderly way when the task is asked to stop. If another run follows
// this one, also ends a server that was started again after the end of its run.
class Stopper {
 public:
  Stopper(TaskContext& context, ps::ParameterServer& ps)
      : context_(context), ps_(ps), thread_([this] {
          SetThreadName("ps-stop");
          Watch();
        }) {}
  ~Stopper() {
    ended_ = true;
    changed_.Set();
    thread_.join();
  }
  // Returns whether the server was ended because the chief takes part in a later run.
  bool run_is_over() const { return run_is_over_; }

 private:
  void Watch() {
    RunEndWatch run_end(context_, /*folder_every=*/kForever);
    const bool followed = context_.order().followed;
    while (!context_.stop().WaitFor(followed ? kAskChiefEvery : kForever, changed_)) {
      if (ended_) return;
      if (!followed || !run_end.ChiefIsInLaterRun()) continue;
      run_is_over_ = true;
      return ps_.Stop();
    }
    if (ended_) return;
    kServerLog.Info("asked to end: waits until the chief has the state",
                    {{"at_most", FormatDuration(context_.stop_budget().serving)}});
    ps_.End(context_.stop_budget().serving);
  }

  TaskContext& context_;
  ps::ParameterServer& ps_;
  std::atomic<bool> ended_ = false, run_is_over_ = false;
  Event changed_;
  std::thread thread_;
};

// Adds the server's step to the task's progress whenever the progress is requested.
class ServerProgress {
 public:
  ServerProgress(ProgressBoard& board, ps::ParameterServer& ps) : board_(board) {
    board.Update([](progress::Progress& p) { p.state = progress::State::kServing; });
    board.SetRefresh([&ps](progress::Progress& p) { p.step = ps.State().global_step; });
  }
  ~ServerProgress() { board_.SetRefresh(nullptr); }

 private:
  ProgressBoard& board_;
};

// Returns the type of the chief's task, or "" if the type is unknown. The sparse form of TF_CONFIG
// does not contain the type, and not every operator sets TFJOB_CHIEF.
std::string ChiefTypeOf(const cluster::TfConfig& config) {
  if (config.cluster.sparse() && config.chief_type.empty()) return "";
  return cluster::ChiefOf(config).type;
}

}  // namespace

Status RunParameterServer(TaskContext& context) {
  const config::StrategyConfig& strategy = context.config().strategy;
  ps::ServerOptions options{
      .identity = context.identity(),
      .chief_type = ChiefTypeOf(context.tf_config()),
      .chief_index = 0,
      .may_have =
          [&context](const std::string& type, int32_t index) {
            return cluster::MayHave(context.tf_config(), {type, index});
          },
      .pool = context.pool(),
      .on_event = Log,
      .credentials = context.credentials(),
      .step_lease_factor = strategy.step_lease_factor,
      .step_lease_least = Duration(static_cast<int64_t>(strategy.step_lease_secs * 1e6))};
  ASSIGN_OR_RETURN(auto ps, ps::ParameterServer::Create(std::move(options)));
  ASSIGN_OR_RETURN(auto server, context.Serve({{ps::kParameterService, ps.get()}}));
  ServerProgress progress(context.board(), *ps);
  kServerLog.Info("serving", {{"task", context.board().Get().task}, {"port", server->port()}});
  Status result;
  {
    Stopper stopper(context, *ps);
    result = ps->WaitUntilFinished();
    if (stopper.run_is_over() && absl::IsCancelled(result)) result = OkStatus();
  }
  // A frozen peer never closes its connection, so limit this wait.
  const StopBudget budget = context.stop_budget();
  server->Shutdown(std::min<Duration>(1s, (budget.process - budget.serving) / 2));
  kServerLog.Info(result.ok() ? "the chief ended the job" : "stopped");
  return result;
}

}  // namespace tfjob::train
