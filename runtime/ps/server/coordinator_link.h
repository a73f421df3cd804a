// Implements the client's end of a server's stream to ps 0. Reconnects whenever the stream is lost,
// and reports each loss and each reconnection. Private to this package.
#pragma once

#include <string>

#include "runtime/base/mutex.h"
#include "runtime/base/thread.h"
#include "runtime/rpc/connection.h"
#include "runtime/rpc/peer_watch.h"
#include "runtime/state/peer.h"

namespace tfjob::ps {

class Synchronizer;

// Thread-safe.
class CoordinatorLink : public rpc::ConnectionHandler {
 public:
  struct Options {
    std::string address;  // address of ps 0
    rpc::Identity self;
    state::PeerEventSink on_event;
    rpc::LivenessRules liveness;
  };
  CoordinatorLink(Synchronizer& synchronizer, rpc::Connector& connector, rpc::PeerWatch& watch,
                  Options options);
  ~CoordinatorLink() override;

  const std::string& address() const { return options_.address; }
  // Sends a message. If there is no connection, the message is dropped; the protocol repeats it.
  void Send(std::string message);

  void OnFrame(rpc::IncomingFrame& frame) override;
  bool NextFrame(rpc::OutgoingFrame&) override { return false; }

 private:
  void Loop();
  void RunOnce(rpc::Transport& transport);
  bool Stopping();
  void Say(state::PeerEvent::Kind kind, const std::string& what) const;
  void OnHealth(rpc::Health health, Duration silence) const;

  Synchronizer& synchronizer_;
  rpc::Connector& connector_;
  rpc::PeerWatch& watch_;
  const Options options_;
  const std::string name_;  // "ps 0 (127.0.0.1:2222)"

  Mutex mutex_;
  CondVar wake_;
  rpc::Connection* live_ ABSL_GUARDED_BY(mutex_) = nullptr;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  Thread thread_;
};

}  // namespace tfjob::ps
