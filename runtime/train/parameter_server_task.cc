// Implements the role of a ps task.
#include <algorithm>
#include <atomic>
#include <thread>

#include "runtime/ps/server/server.h"
#include "runtime/rpc/server.h"
#include "runtime/train/log.h"
#include "runtime/train/task.h"

namespace tfjob::train {
namespace {

constexpr Duration kShowServerEvery = 100ms;
// How long, at most, the server keeps serving after it was asked to stop. All tasks of a job are
// asked to stop together, but the chief still needs the server to save a checkpoint, and the
// workers need it to finish their steps.
constexpr Duration kStopGrace = 20s;

void ShowProgress(ps::ParameterServer& ps, ProgressBoard& board) {
  const ps::ServerState state = ps.State();
  board.Update([&](progress::Progress& p) { p.step = state.global_step; });
}

bool Serves(const ps::ServerState& state) {
  return std::any_of(state.members.begin(), state.members.end(),
                     [](const state::PeerState& member) {
                       return member.role == state::PeerRole::kTrains &&
                              member.health == state::PeerHealth::kConnected;
                     });
}

void AwaitTrainingTasks(ps::ParameterServer& ps, Clock& clock, const std::atomic<bool>& ended) {
  const Duration deadline = clock.Monotonic() + kStopGrace;
  while (!ended && Serves(ps.State()) && clock.Monotonic() < deadline)
    std::this_thread::sleep_for(20ms);
}

// Returns "" if the chief is unknown: the sparse form of TF_CONFIG does not name it, and not every
// operator sets TFJOB_CHIEF.
std::string ChiefTypeOf(const cluster::TfConfig& config) {
  if (config.cluster.sparse() && config.chief_type.empty()) return "";
  return cluster::ChiefOf(config).type;
}

}  // namespace

Status RunParameterServer(TaskContext& context) {
  ps::ServerOptions options{.identity = context.identity(),
                            .chief_type = ChiefTypeOf(context.tf_config()),
                            .chief_index = 0,
                            .may_have =
                                [&context](const std::string& type, int32_t index) {
                                  return cluster::MayHave(context.tf_config(), {type, index});
                                },
                            .pool = context.pool(),
                            .on_event =
                                [](const state::PeerEvent& event) {
                                  kServerLog.Info(event.message, {{"peer", event.peer}});
                                },
                            .credentials = context.credentials()};
  ASSIGN_OR_RETURN(auto ps, ps::ParameterServer::Create(std::move(options)));
  ASSIGN_OR_RETURN(auto server, context.Serve({{ps::kParameterService, ps.get()}}));
  context.board().Update([](progress::Progress& p) { p.state = progress::State::kServing; });
  kServerLog.Info("serving", {{"task", context.board().Get().task}, {"port", server->port()}});

  std::atomic<bool> ended{false};
  std::thread stopper([&] {
    while (!ended && !context.stop().WaitFor(kShowServerEvery)) ShowProgress(*ps, context.board());
    if (ended) return;
    AwaitTrainingTasks(*ps, context.clock(), ended);
    ps->Stop();
  });
  Status result = ps->WaitUntilFinished();
  ended = true;
  stopper.join();
  server->Shutdown(1s);
  kServerLog.Info(result.ok() ? "the chief ended the job" : "stopped");
  return result;
}

}  // namespace tfjob::train
