// Implements the member's end of the stream to the leader. Reconnects whenever the stream is lost.
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
  // Returns whether `leader` is an old process of the leader's task that was replaced while it was
  // paused or cut off.
  bool WasReplaced(const rpc::Identity& leader);
  void RunOnce(rpc::Transport& transport, int64_t incarnation);
  // Records that there is no stream. Returns false if the thread must end.
  bool NoteFailure(const Status& why);

  const std::shared_ptr<Endpoint::State> state_;
  const std::unique_ptr<rpc::Connector> connector_;
  const std::string name_;  // the leader's name: "chief 0"
  bool stopping_ ABSL_GUARDED_BY(state_->mutex) = false;
  Thread thread_;
};

}  // namespace tfjob::collectives
