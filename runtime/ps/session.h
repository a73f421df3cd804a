// One peer's stream on a server: takes its requests and contributions, sends values and state back.
// Inside the room only.
#pragma once

#include <deque>
#include <memory>
#include <string>

#include "runtime/base/mutex.h"
#include "runtime/kernels/stream.h"
#include "runtime/ps/store.h"
#include "runtime/rpc/buffer_pool.h"
#include "runtime/rpc/connection.h"

namespace tfjob::ps {

class Service;
class Staging;

// Answer may be called from any thread; the rest is the connection's.
class Session : public rpc::ConnectionHandler {
 public:
  Session(Service& service, rpc::Identity peer, std::string address, rpc::Transport& transport,
          ThreadPool* pool);

  rpc::Connection& connection() { return connection_; }
  const rpc::Identity& peer() const { return peer_; }
  const std::string& address() const { return address_; }
  protocol::Worker worker() const { return {peer_.task_type, peer_.task_index}; }

  // Ends the exchange `sequence`, if it is the current one, with all values or none. `step` and
  // `flags` as of wire::kValues.
  void Answer(uint64_t sequence, int64_t step, uint16_t flags, bool with_values);
  void Refuse(uint64_t sequence, const Status& why);
  // Answers a request.
  void ReplyTo(uint64_t sequence, const Status& status);

  void OnFrame(rpc::IncomingFrame& frame) override;
  bool NextFrame(rpc::OutgoingFrame& frame) override;

 private:
  // A contribution on its way in; reader thread only.
  struct Push {
    std::shared_ptr<Store> store;  // null: refused
    protocol::Name name;
    int64_t step = 0;
    size_t remaining = 0;              // shards to come
    std::shared_ptr<Staging> staging;  // synchronous
  };
  // What goes out; shared with Answer and the writer thread.
  struct Reply {
    std::shared_ptr<Store> store;
    uint64_t sequence = 0;
    std::deque<int> shards;
    bool last = false;  // `final` is known
    rpc::FrameHeader final;
  };
  struct Copy {  // of the state, for a snapshot
    std::shared_ptr<Store> store;
    uint64_t sequence = 0;
    size_t next = 0;
    std::string ledger;
  };

  void Request(rpc::IncomingFrame& frame);
  void BeginFill(rpc::IncomingFrame& frame);
  void Fill(rpc::IncomingFrame& frame);
  void EndFill(rpc::IncomingFrame& frame);
  void BeginCopy(uint64_t sequence);
  void Pull(const rpc::FrameHeader& header);

  void OnPush(rpc::IncomingFrame& frame);
  bool BeginPush(const rpc::FrameHeader& header);
  Status TakeShard(rpc::IncomingFrame& frame, const rpc::SegmentInfo& segment);
  void EndPush();

  bool NextValues(rpc::OutgoingFrame& frame) ABSL_LOCKS_EXCLUDED(mutex_);
  bool NextCopy(rpc::OutgoingFrame& frame) ABSL_LOCKS_EXCLUDED(mutex_);

  Service& service_;
  const rpc::Identity peer_;
  const std::string address_;
  kernels::Stream stream_;
  std::shared_ptr<rpc::BufferPool> buffers_ = rpc::BufferPool::Create();

  Push push_;
  std::shared_ptr<Store> fill_;
  Status fill_status_;

  Mutex mutex_;
  Reply reply_ ABSL_GUARDED_BY(mutex_);
  Copy copy_ ABSL_GUARDED_BY(mutex_);
  std::vector<int> batch_;  // writer thread only
  std::string text_;        // writer thread only: the body of the frame that is being written

  rpc::Connection connection_;
};

}  // namespace tfjob::ps
