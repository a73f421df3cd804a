// The role of a ps task.
#include <atomic>
#include <thread>

#include "runtime/base/log.h"
#include "runtime/ps/server.h"
#include "runtime/train/task.h"

namespace tfjob::train {
namespace {

constexpr Logger kLog("ps");

}  // namespace

Status RunParameterServer(TaskContext& context) {
  ps::ServerOptions options{
      .identity = context.identity(),
      .servers = context.ParameterServers(),
      .pool = context.pool(),
      .on_event = [](const ps::Event& event) { kLog.Info(event.message, {{"peer", event.peer}}); }};
  ASSIGN_OR_RETURN(auto ps, ps::ParameterServer::Create(std::move(options)));
  ASSIGN_OR_RETURN(auto server, context.Serve({{ps::kParameterService, ps.get()}}));
  context.board().Update([](progress::Progress& p) { p.state = progress::State::kServing; });
  kLog.Info("serving", {{"task", context.board().Get().task}, {"port", server->port()}});

  std::atomic<bool> ended{false};
  std::thread stopper([&] {
    while (!ended && !context.stop().WaitFor(200ms)) {
      const ps::ServerState state = ps->State();
      context.board().Update([&](progress::Progress& p) { p.step = state.global_step; });
    }
    ps->Stop();
  });
  Status result = ps->WaitUntilFinished();
  ended = true;
  stopper.join();
  server->Shutdown(1s);
  kLog.Info(result.ok() ? "the chief ended the job" : "stopped");
  return result;
}

}  // namespace tfjob::train
