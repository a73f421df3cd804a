// A server's stream to ps 0, kept up. Inside the room only.
#pragma once

#include <string>
#include <thread>

#include "runtime/base/mutex.h"
#include "runtime/rpc/connection.h"
#include "runtime/rpc/peer_watch.h"

namespace tfjob::ps {

class Synchronizer;

// Thread-safe.
class CoordinatorLink : public rpc::ConnectionHandler {
 public:
  CoordinatorLink(Synchronizer& synchronizer, rpc::Connector& connector, rpc::PeerWatch& watch,
                  std::string address, rpc::Identity self);
  ~CoordinatorLink() override;

  // Lost when there is no connection; the protocol repeats it.
  void Send(std::string message);

  void OnFrame(rpc::IncomingFrame& frame) override;
  bool NextFrame(rpc::OutgoingFrame&) override { return false; }

 private:
  void Loop();
  void RunOnce(rpc::Transport& transport);
  bool Stopping();

  Synchronizer& synchronizer_;
  rpc::Connector& connector_;
  rpc::PeerWatch& watch_;
  const std::string address_;
  const rpc::Identity self_;

  Mutex mutex_;
  CondVar wake_;
  rpc::Connection* live_ ABSL_GUARDED_BY(mutex_) = nullptr;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace tfjob::ps
