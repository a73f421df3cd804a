// A client's connection to one server, and that server's part of the exchange in progress. Inside
// the room only.
#pragma once

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "runtime/base/mutex.h"
#include "runtime/ps/client/client.h"
#include "runtime/ps/placement.h"
#include "runtime/rpc/connection.h"
#include "runtime/rpc/peer_watch.h"

namespace tfjob::ps {

// The step in progress, common to all links.
struct Step {
  bool active = false;
  bool pull = false;  // values only
  uint64_t sequence = 0;
  int64_t step = 0;  // of the values that the gradients were computed from
  std::vector<std::span<const std::byte>> gradients;
  std::vector<std::span<std::byte>> values;
  std::vector<bool> marked;
  size_t unmarked = 0;
};

class Link;

// What the client and its links share; the one lock of both.
struct LinkContext {
  LinkContext(ClientOptions client_options, std::vector<Shard> all_shards)
      : options(std::move(client_options)), shards(std::move(all_shards)) {}

  const ClientOptions options;
  const std::vector<Shard> shards;
  rpc::Connector* connector = nullptr;
  rpc::PeerWatch* watch = nullptr;
  std::vector<const Link*> links;  // by server
  Mutex mutex;
  CondVar changed;
  Step step ABSL_GUARDED_BY(mutex);
  bool finished ABSL_GUARDED_BY(mutex) = false;           // the chief ended the job
  bool holding ABSL_GUARDED_BY(mutex) = false;            // ps 0 commits nothing for our copy
  std::vector<PeerState> members ABSL_GUARDED_BY(mutex);  // as ps 0 last said
};

// What a server said of itself.
struct RemoteState {
  bool ready = false;
  int64_t epoch = 0;
  int64_t step = 0;
  std::string fingerprint;  // "" unless ready
  int64_t servers = 0;      // that share the state; 0 unless ready
};

// The caller's thread calls the methods; Mark and Describe may be called on any.
class Link : public rpc::ConnectionHandler {
 public:
  Link(LinkContext& context, int server);
  ~Link() override;

  const std::string& name() const { return name_; }  // "ps 1 (127.0.0.1:2223)"
  const std::vector<int>& shards() const { return shards_; }

  // Connects, after taking down what was. Errors as rpc::Connector has them.
  Status Connect(Duration timeout);
  void Disconnect();

  // Sends a request and waits for its answer; the answer's header and body. The status that the
  // server answered with, or Unavailable and DeadlineExceeded.
  struct Answer {
    rpc::FrameHeader header;
    std::string body;
  };
  StatusOr<Answer> Request(rpc::FrameHeader header, std::string body, Duration timeout);
  StatusOr<RemoteState> Query(Duration timeout);
  // Asks for ps 0's members, without waiting.
  void Poll();
  // Keeps ps 0's hold while the state is being copied.
  void RenewHold();

  // Puts this server's part of the state there, under `epoch`.
  Status Fill(const Snapshot& snapshot, int64_t epoch, Duration timeout);
  // Begins to copy this server's part of the state into `snapshot`, whose tensors have shapes.
  Status BeginCopy(Snapshot& snapshot);
  Status AwaitCopy(Duration timeout);

  // An answer that has not come is not wanted: no reader writes into the caller's spans any more.
  void Quiesce();
  // As Quiesce, after a failure: the wire does not read the caller's spans any more either.
  void Abandon();

  enum class Part {
    kDown,      // not connected
    kIdle,      // connected; nothing under way
    kRefused,   // the server has no state, or another epoch's
    kAwaited,   // under way
    kAnswered,  // `answer`
  };

  // These want context.mutex held. (Clang cannot see that the contexts of all links are one.)
  // (Re)starts the server's part of context.step, under the server's `epoch`.
  void Start(int64_t epoch) ABSL_NO_THREAD_SAFETY_ANALYSIS;
  // The server's state is to be asked anew before the next start.
  void Reset() ABSL_NO_THREAD_SAFETY_ANALYSIS { started_ = refused_ = false; }
  void Mark(int shard) ABSL_NO_THREAD_SAFETY_ANALYSIS;
  // Gradients go when enough for a frame are marked.
  void Wake() ABSL_NO_THREAD_SAFETY_ANALYSIS;
  Part part() const ABSL_NO_THREAD_SAFETY_ANALYSIS;
  const rpc::FrameHeader& answer() const ABSL_NO_THREAD_SAFETY_ANALYSIS { return answer_; }
  const Status& why() const ABSL_NO_THREAD_SAFETY_ANALYSIS { return why_; }

  // All gradients are marked: they go, a small exchange from this thread.
  void Flush() ABSL_LOCKS_EXCLUDED(context_.mutex);

  PeerState Describe() ABSL_LOCKS_EXCLUDED(context_.mutex);

  void OnFrame(rpc::IncomingFrame& frame) override;
  bool NextFrame(rpc::OutgoingFrame& frame) override;

 private:
  struct FillCursor {
    const Snapshot* snapshot = nullptr;  // null: not filling
    uint64_t request = 0;
    int64_t epoch = 0;
    std::string ledger;  // goes last
    // What goes next: bytes of a slot of one of shards_.
    size_t shard = 0;
    size_t slot = 0;
    size_t offset = 0;
    bool ended = false;
  };
  struct Pending {  // a request
    uint64_t number = 0;
    bool done = false;
    Status status;
    Answer answer;
  };

  void OnEnd(const Status& why);
  void OnHealth(rpc::Health health, Duration silence) const;

  // With context.mutex held.
  bool NextPush(rpc::OutgoingFrame& frame) ABSL_NO_THREAD_SAFETY_ANALYSIS;
  bool NextFill(rpc::OutgoingFrame& frame) ABSL_NO_THREAD_SAFETY_ANALYSIS;
  size_t AppendFill(rpc::OutgoingFrame& frame) ABSL_NO_THREAD_SAFETY_ANALYSIS;
  size_t AppendGradient(rpc::OutgoingFrame& frame) ABSL_NO_THREAD_SAFETY_ANALYSIS;
  bool Awaited() const ABSL_NO_THREAD_SAFETY_ANALYSIS { return part() == Part::kAwaited; }

  void OnValues(rpc::IncomingFrame& frame);
  void EndValues(const rpc::IncomingFrame& frame, uint64_t bytes, Status status);
  void OnRefused(rpc::IncomingFrame& frame);
  void OnCopy(rpc::IncomingFrame& frame);
  void EndCopy(rpc::IncomingFrame& frame, const Snapshot& snapshot);
  // This server's shard that the segment lies in; DataLoss when there is none.
  StatusOr<const Shard*> ShardOf(const rpc::SegmentInfo& segment) const;
  void OnState(rpc::IncomingFrame& frame);
  void Settle(const rpc::FrameHeader& header, Status status, std::string body);
  StatusOr<Answer> Await(uint64_t number, Duration timeout);
  void Say(Event::Kind kind, const std::string& message) const;
  // What is awaited of the server, for a message.
  std::string Awaiting() const ABSL_NO_THREAD_SAFETY_ANALYSIS;

  // A segment of the caller's memory goes to the wire, and comes back.
  void Lend();
  static void Released(void* link);
  bool Lent();
  void AwaitReleases();

  LinkContext& context_;
  const int server_;
  const std::string address_;
  const std::string name_;
  std::vector<int> shards_;
  uint64_t bytes_ = 0;  // of all its shards

  // Changed by the caller's thread only.
  std::unique_ptr<rpc::Transport> transport_;
  std::unique_ptr<rpc::Connection> connection_;
  std::thread reader_;
  rpc::PeerWatch::Ticket ticket_ = nullptr;
  std::string text_;  // of the frame that is being written
  Mutex flight_mutex_;
  CondVar released_;
  int in_flight_ ABSL_GUARDED_BY(flight_mutex_) = 0;  // segments that the wire holds

  bool up_ ABSL_GUARDED_BY(context_.mutex) = false;
  Status why_ ABSL_GUARDED_BY(context_.mutex);  // down or refused
  rpc::Connection* live_ ABSL_GUARDED_BY(context_.mutex) = nullptr;

  bool started_ ABSL_GUARDED_BY(context_.mutex) = false;
  bool first_ ABSL_GUARDED_BY(context_.mutex) = false;
  bool answered_ ABSL_GUARDED_BY(context_.mutex) = false;
  bool refused_ ABSL_GUARDED_BY(context_.mutex) = false;
  bool reading_ ABSL_GUARDED_BY(context_.mutex) = false;
  int64_t epoch_ ABSL_GUARDED_BY(context_.mutex) = 0;
  // Marked shards in the order in which they go; the first `sent_` have gone, and `offset_` bytes of the
  // next one.
  std::vector<int> ready_ ABSL_GUARDED_BY(context_.mutex);
  size_t sent_ ABSL_GUARDED_BY(context_.mutex) = 0;
  size_t offset_ ABSL_GUARDED_BY(context_.mutex) = 0;
  size_t ready_bytes_ ABSL_GUARDED_BY(context_.mutex) = 0;  // marked and not gone
  uint64_t bytes_to_come_ ABSL_GUARDED_BY(context_.mutex) = 0;
  rpc::FrameHeader answer_ ABSL_GUARDED_BY(context_.mutex);

  uint64_t next_request_ ABSL_GUARDED_BY(context_.mutex) = 1;
  Pending pending_ ABSL_GUARDED_BY(context_.mutex);
  FillCursor fill_ ABSL_GUARDED_BY(context_.mutex);
  Snapshot* copy_ ABSL_GUARDED_BY(context_.mutex) = nullptr;
  uint64_t copy_request_ ABSL_GUARDED_BY(context_.mutex) = 0;
  uint64_t copied_ ABSL_GUARDED_BY(context_.mutex) = 0;  // bytes
};

}  // namespace tfjob::ps
