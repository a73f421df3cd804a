// Implements the member's end of the stream to the leader. Reconnects whenever the stream is lost.
// If the group may shrink, searches for the task that leads, and starts to lead if there is none.
// Private to this package.
#pragma once

#include <memory>

#include "runtime/base/thread.h"
#include "runtime/collectives/endpoint/endpoint_state.h"

namespace tfjob::collectives {

// Runs one thread.
class LeaderLink : public rpc::ConnectionHandler {
 public:
  explicit LeaderLink(std::shared_ptr<Endpoint::State> state);
  ~LeaderLink() override;

  void OnFrame(rpc::IncomingFrame& frame) override;
  bool NextFrame(rpc::OutgoingFrame&) override { return false; }

 private:
  void Loop();
  // Asks one task after another to lead this one. Serves the stream to the first task that accepts,
  // until the stream is lost. Returns false if the thread must exit.
  bool Search();
  // Opens a stream to the task if it leads.
  StatusOr<rpc::OpenStream> Ask(int task);
  // Returns whether `leader` is an old process of its task, which was replaced while paused or cut
  // off.
  bool WasReplaced(const rpc::Identity& leader);
  void RunOnce(int task, rpc::Transport& transport, int64_t incarnation);
  // Records that the task does not lead this one. Returns false if the thread must exit.
  bool NoteFailure(int task, const Status& why);

  const std::shared_ptr<Endpoint::State> state_;
  const std::unique_ptr<rpc::Connector> connector_;
  bool stopping_ ABSL_GUARDED_BY(state_->mutex) = false;
  Thread thread_;
};

}  // namespace tfjob::collectives
