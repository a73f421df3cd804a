// Implements the training task's end of the stream to one server. A link owns the connection, and
// tracks the server's part of the current exchange. Private to this package.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "runtime/base/json.h"
#include "runtime/base/mutex.h"
#include "runtime/base/thread.h"
#include "runtime/ps/client/client.h"
#include "runtime/ps/client/members.h"
#include "runtime/ps/placement.h"
#include "runtime/ps/wire.h"
#include "runtime/rpc/buffer_pool.h"
#include "runtime/rpc/connection.h"
#include "runtime/rpc/peer_watch.h"

namespace tfjob::ps {

// The step in progress, shared by all links.
struct Step {
  bool active = false;
  bool pull = false;  // only read the values, or rows of tables
  bool rows = false;  // only read rows: `values` receives the rows that `indices` lists
  uint64_t sequence = 0;
  int64_t step = 0;   // step of the values from which the gradients were computed
  int64_t drawn = 0;  // see ParameterClient::BeginStep
  // Asynchronous: the state of ps 0 lacks batches before the current one. The task draws these
  // batches and the current one again, so this step sends ps 0 no gradient and only reads its
  // values.
  bool rewound = false;
  std::vector<std::span<const std::byte>> gradients;
  std::vector<std::span<const int64_t>> indices;  // see ParameterClient::BeginStep
  std::vector<std::span<std::byte>> values;
  std::vector<bool> marked;
  size_t unmarked = 0;
};

class Link;

// The state that the client and its links share. Its lock also guards members of the links.
struct LinkContext {
  LinkContext(ClientOptions client_options, std::vector<Shard> all_shards)
      : options(std::move(client_options)), shards(std::move(all_shards)) {}

  const ClientOptions options;
  const std::vector<Shard> shards;
  rpc::Connector* connector = nullptr;
  rpc::PeerWatch* watch = nullptr;
  std::vector<Link*> links;  // indexed by server
  Mutex mutex;
  CondVar changed;
  Step step ABSL_GUARDED_BY(mutex);
  bool finished ABSL_GUARDED_BY(mutex) = false;     // the chief ended the job
  Status failure ABSL_GUARDED_BY(mutex);            // the run's failure; OK if none is known
  bool interrupted ABSL_GUARDED_BY(mutex) = false;  // stop waiting for answers
  bool closing ABSL_GUARDED_BY(mutex) = false;      // the client is being destroyed
  bool holding ABSL_GUARDED_BY(mutex) = false;      // ps 0 suspends commits during a copy
  Members members ABSL_GUARDED_BY(mutex);
  std::set<std::string> ending_tasks ABSL_GUARDED_BY(mutex);  // the tasks that were asked to stop
  // The tasks that the first step is waiting for, and the tasks without which that step started, as
  // last reported.
  std::string missing ABSL_GUARDED_BY(mutex), absent ABSL_GUARDED_BY(mutex);
  int64_t incarnation ABSL_GUARDED_BY(mutex) = 0;  // this process's incarnation; 0: none
  // See ParameterClient::SetLearningRate. In the chief, the rate that all servers are to have; in
  // the other tasks, the rate that ps 0 last reported.
  std::optional<state::LearningRate> learning_rate ABSL_GUARDED_BY(mutex);
};

// The state of a server, as the server last reported it.
struct RemoteState {
  bool ready = false;
  int64_t epoch = 0;
  int64_t step = 0;
  std::string fingerprint;  // "" unless ready
  int64_t servers = 0;      // number of servers that share the state; 0 unless ready
  int64_t incarnation = 0;  // the lowest incarnation that the server accepts from this process
  std::optional<state::LearningRate> learning_rate = {};  // the rate that the chief has set
};

// One thread at a time may use a link: the one that calls the ParameterClient, or a thread that the
// client has started for this link. Any thread may call Mark, Wake, Poll, RenewHold, ReadCopy,
// DropCopy and Describe.
class Link : public rpc::ConnectionHandler {
 public:
  Link(LinkContext& context, int server);
  ~Link() override;

  const std::string& name() const { return name_; }  // "ps 1 (127.0.0.1:2223)"
  const std::vector<int>& shards() const { return shards_; }

  // Closes the existing connection, if any, and connects again. Propagates errors from
  // rpc::Connector. Also returns FailedPrecondition if the address belongs to another task.
  Status Connect(Duration timeout);
  void Disconnect();

  // Sends a request and returns the header and body of its answer. Returns the server's error if it
  // answered with one, Unavailable or DeadlineExceeded if no answer arrives, and Cancelled if
  // context.interrupted is set during the wait.
  struct Answer {
    rpc::FrameHeader header;
    std::string body;
  };
  StatusOr<Answer> Request(rpc::FrameHeader header, std::string body, Duration timeout);
  StatusOr<RemoteState> Query(Duration timeout);
  // Queries only `ready`, `epoch` and `step`. Cheap enough to call once per step.
  StatusOr<RemoteState> QueryStep(Duration timeout);
  // Sends a query and does not wait for the answer. The answer of ps 0 contains the list
  // of members.
  void Poll();
  // Requests that ps 0 keep commits suspended while the state is being copied. Has no effect if no
  // copy is in progress.
  void RenewHold();
  // Returns whether the server has reported that it was asked to stop.
  bool Ending() ABSL_LOCKS_EXCLUDED(context_.mutex);
  // Notifies a server that is shutting down that the states of all servers have been copied.
  void SayTaken();

  // Fills the server with its part of the state, under `epoch`. Has no time limit while bytes are
  // being transferred.
  Status Fill(const state::Snapshot& snapshot, int64_t epoch);
  // Starts to copy this server's part of the state into `snapshot`, whose tensors must already have
  // their shapes. Returns the identifier of the copy.
  StatusOr<uint64_t> BeginCopy(state::Snapshot& snapshot);
  // Waits until the copy is complete. Has no time limit while bytes are being transferred. The
  // answer contains the server's step and its part of the ledger.
  StatusOr<Answer> AwaitCopy();
  // Reads a piece of a table from the copy `copy`. The server keeps this copy until DropCopy is
  // called or the connection is closed. Returns Unavailable if the connection is lost, and the
  // server's error if the server no longer has the copy.
  Status ReadCopy(uint64_t copy, const wire::CopyPiece& piece, std::span<std::byte> to);
  void DropCopy(uint64_t copy);
  // Describes how far a fill or copy has progressed: "12 of 40 MB".
  std::string DescribeTransfer() ABSL_LOCKS_EXCLUDED(context_.mutex);

  // Causes the link to ignore an outstanding answer. Does not affect the frame being received.
  void Ignore();
  // Waits until the frame being received, if any, has arrived or the stream has closed; breaks the
  // stream at the deadline. After Ignore and this function, the reader no longer writes into the
  // caller's spans.
  void AwaitReader(std::optional<SteadyTime> deadline);
  // Call Release or AwaitWriter only after AwaitReader. Once either has returned, the writer no
  // longer reads from the caller's spans. If the writer is still reading from them, Release
  // disconnects at once, whereas AwaitWriter disconnects only at the deadline, and keeps the
  // answer.
  void Release();
  void AwaitWriter(SteadyTime deadline);

  enum class Part {
    kDown,      // not connected
    kIdle,      // connected; no exchange in progress
    kRefused,   // the server has no state, or the state of another epoch
    kAwaited,   // in progress
    kAnswered,  // done; see answer()
  };

  // The following methods require context.mutex. Their thread-safety analysis is off, because Clang
  // cannot see that all links share one context.

  // Starts or restarts the server's part of context.step, under the server's `epoch`.
  void Start(int64_t epoch) ABSL_NO_THREAD_SAFETY_ANALYSIS;
  // Makes the link idle, so that the server is queried again before the next Start.
  void Reset() ABSL_NO_THREAD_SAFETY_ANALYSIS { started_ = refused_ = false; }
  void Mark(int shard) ABSL_NO_THREAD_SAFETY_ANALYSIS;
  // Wakes the writer if the marked gradients justify a frame.
  void Wake() ABSL_NO_THREAD_SAFETY_ANALYSIS;
  Part part() const ABSL_NO_THREAD_SAFETY_ANALYSIS;
  // Returns whether a frame of values was cut off and no complete values have arrived since then.
  bool torn() const ABSL_NO_THREAD_SAFETY_ANALYSIS { return torn_; }
  // Returns whether the exchange was answered, even if the connection was lost after the answer.
  bool answered() const ABSL_NO_THREAD_SAFETY_ANALYSIS { return started_ && answered_; }
  const rpc::FrameHeader& answer() const ABSL_NO_THREAD_SAFETY_ANALYSIS { return answer_; }
  const Status& why() const ABSL_NO_THREAD_SAFETY_ANALYSIS { return why_; }

  // Sends the gradients; called once all are marked. If the exchange is small, the calling thread
  // writes it.
  void Flush() ABSL_LOCKS_EXCLUDED(context_.mutex);

  // ps 0 only: returns whether this process is registered on the current connection. The caller
  // records this with set_registered.
  bool registered() const ABSL_NO_THREAD_SAFETY_ANALYSIS { return up_ && registered_; }
  void set_registered() ABSL_NO_THREAD_SAFETY_ANALYSIS { registered_ = up_; }

  state::PeerState Describe() ABSL_LOCKS_EXCLUDED(context_.mutex);

  void OnFrame(rpc::IncomingFrame& frame) override;
  bool TakesInPlace(const rpc::FrameHeader& header) const override;
  bool NextFrame(rpc::OutgoingFrame& frame) override;

 private:
  struct FillCursor {
    const state::Snapshot* snapshot = nullptr;  // null: not filling
    uint64_t request = 0;
    int64_t epoch = 0;
    std::string ledger;  // sent last
    // Position of the next bytes: the index in shards_, the slot (0: the value) and the offset in
    // the slot.
    size_t shard = 0;
    size_t slot = 0;
    size_t offset = 0;
    bool ended = false;
    // For a streamed slot: the bytes [piece_begin, piece_end) that the filling thread has read, and
    // whether that thread should read the next piece.
    rpc::OwnedLease piece;
    size_t piece_begin = 0, piece_end = 0;
    bool wanted = false;
  };
  // A table piece being read.
  struct PieceRead {
    uint64_t number = 0;  // the request's sequence; 0 if no piece is being read
    wire::CopyPiece piece;
    std::span<std::byte> to;
    bool arriving = false;  // the reader is writing into `to`
    bool done = false;
    Status status;
  };
  // The update of a shard. If it consists of `count` rows, the bytes are the rows' indices and
  // values.
  struct Update {
    int shard = 0;
    bool by_rows = false;
    uint64_t count = 0;
    std::span<const std::byte> indices = {}, values = {};

    size_t bytes() const { return indices.size() + values.size(); }
    // Returns up to `most` bytes of the indices or of the values, starting at `offset`.
    std::span<const std::byte> Piece(size_t offset, size_t most) const;
  };
  struct Pending {  // a request
    uint64_t number = 0;
    bool done = false;
    Status status;
    Answer answer;
  };

  StatusOr<rpc::OpenStream> Open(Duration timeout) const;
  // Returns DataLoss for a step that no server can have reached.
  Status CheckStep(int64_t step) const;
  StatusOr<RemoteState> StateOf(const rpc::FrameHeader& header) const;
  // Starts the reader thread. If this fails, the link is down.
  Status StartReader();
  void OnEnd(const Status& why);
  void OnHealth(rpc::Health health, Duration silence) const;

  // These require context.mutex.
  bool NextPush(rpc::OutgoingFrame& frame) ABSL_NO_THREAD_SAFETY_ANALYSIS;
  bool NextFill(rpc::OutgoingFrame& frame) ABSL_NO_THREAD_SAFETY_ANALYSIS;
  size_t AppendFill(rpc::OutgoingFrame& frame) ABSL_NO_THREAD_SAFETY_ANALYSIS;
  bool HasBytesToFill() ABSL_NO_THREAD_SAFETY_ANALYSIS;
  // Releases the lock while it reads.
  Status ReadPieceToFill() ABSL_NO_THREAD_SAFETY_ANALYSIS;
  bool IsFillSent() ABSL_LOCKS_EXCLUDED(context_.mutex);
  size_t AppendGradient(rpc::OutgoingFrame& frame) ABSL_NO_THREAD_SAFETY_ANALYSIS;
  Update UpdateOf(int shard) const ABSL_NO_THREAD_SAFETY_ANALYSIS;
  bool Awaited() const ABSL_NO_THREAD_SAFETY_ANALYSIS { return part() == Part::kAwaited; }
  // Returns whether this step only reads the server's values and sends it no gradient.
  bool Pulls() const ABSL_NO_THREAD_SAFETY_ANALYSIS {
    if (context_.step.rows) return false;
    return context_.step.pull || (server_ == 0 && context_.step.rewound);
  }
  // The rows that a step reads or updates in one shard: `count` entries of the step's list of rows
  // of the variable, from position `begin` on.
  struct RowRange {
    size_t begin = 0, count = 0;
  };
  RowRange RowsOf(const Step& step, const Shard& shard) const;
  void StartRows() ABSL_NO_THREAD_SAFETY_ANALYSIS;
  // Chief: sends the learning rate, unless the server already has it.
  void SendRate() ABSL_NO_THREAD_SAFETY_ANALYSIS;

  void OnValues(rpc::IncomingFrame& frame);
  void EndValues(const rpc::IncomingFrame& frame, uint64_t bytes, Status status);
  void OnRefused(rpc::IncomingFrame& frame);
  void OnCopy(rpc::IncomingFrame& frame);
  void EndCopy(rpc::IncomingFrame& frame);
  void OnCopied(rpc::IncomingFrame& frame);
  // Completes the read of the piece requested under `number` with `status`, unless that read is
  // already complete. Requires context.mutex.
  void EndPiece(uint64_t number, const Status& status) ABSL_NO_THREAD_SAFETY_ANALYSIS;
  // Returns the memory for the bytes of a segment, or DataLoss if these values were not requested
  // from this server.
  StatusOr<std::span<std::byte>> TargetOf(const Step& step, const rpc::SegmentInfo& segment) const;
  // Returns this server's shard that contains the segment; DataLoss if there is none.
  StatusOr<const Shard*> ShardOf(const rpc::SegmentInfo& segment) const;
  void OnState(rpc::IncomingFrame& frame);
  void NoteEndings(bool ending, const std::string& body);
  void OnAttendance(const Json& state);
  void OnRate(const Json& state);
  void Settle(const rpc::FrameHeader& header, Status status, std::string body);
  StatusOr<Answer> Await(uint64_t number, Duration timeout);
  StatusOr<Answer> AwaitTransfer(uint64_t number);
  uint64_t BytesToFill(const state::Snapshot& snapshot) const;
  uint64_t BytesToCopy() const;
  void Say(state::PeerEvent::Kind kind, const std::string& message) const;
  // Describes the answer that this task needs from the server, for messages.
  std::string Awaiting() const ABSL_NO_THREAD_SAFETY_ANALYSIS;

  // Lend and Released count the segments of the caller's memory that the connection may still read.
  void Lend();
  static void Released(void* link);
  bool Lent();
  void AwaitReleases();

  LinkContext& context_;
  const int server_;
  const std::string address_;
  const std::string name_;
  std::vector<int> shards_;
  uint64_t bytes_ = 0;  // total size of the server's shards that are read whole

  // Only the caller's thread changes the transport and the connection.
  std::unique_ptr<rpc::Transport> transport_;
  std::unique_ptr<rpc::Connection> connection_;
  Thread reader_;
  rpc::PeerWatch::Ticket ticket_ = nullptr;
  std::string text_;  // text of the frame being written
  Mutex flight_mutex_;
  CondVar released_;
  int in_flight_ ABSL_GUARDED_BY(flight_mutex_) = 0;  // segments that the connection may still read

  bool up_ ABSL_GUARDED_BY(context_.mutex) = false;
  bool registered_ ABSL_GUARDED_BY(context_.mutex) = false;
  int64_t announced_ ABSL_GUARDED_BY(context_.mutex) = 0;  // the announced incarnation; 0: none
  // The rate that the chief has sent on this connection since it last filled the server.
  std::optional<state::LearningRate> sent_rate_ ABSL_GUARDED_BY(context_.mutex);
  Status why_ ABSL_GUARDED_BY(context_.mutex);  // the reason, if down or refused
  rpc::Connection* live_ ABSL_GUARDED_BY(context_.mutex) = nullptr;
  bool ending_ ABSL_GUARDED_BY(context_.mutex) = false;  // the server was asked to stop

  bool started_ ABSL_GUARDED_BY(context_.mutex) = false;
  bool first_ ABSL_GUARDED_BY(context_.mutex) = false;
  bool answered_ ABSL_GUARDED_BY(context_.mutex) = false;
  bool refused_ ABSL_GUARDED_BY(context_.mutex) = false;
  bool reading_ ABSL_GUARDED_BY(context_.mutex) = false;
  bool torn_ ABSL_GUARDED_BY(context_.mutex) = false;
  int64_t epoch_ ABSL_GUARDED_BY(context_.mutex) = 0;
  // Updates of the marked shards in sending order. The first `sent_` updates, and `offset_` bytes
  // of the next one, have been sent.
  std::vector<Update> ready_ ABSL_GUARDED_BY(context_.mutex);
  bool counted_ ABSL_GUARDED_BY(context_.mutex) = false;  // the next update's row count was sent
  size_t sent_ ABSL_GUARDED_BY(context_.mutex) = 0;
  size_t offset_ ABSL_GUARDED_BY(context_.mutex) = 0;
  size_t ready_bytes_ ABSL_GUARDED_BY(context_.mutex) = 0;  // marked and not yet sent
  uint64_t bytes_to_come_ ABSL_GUARDED_BY(context_.mutex) = 0;
  rpc::FrameHeader answer_ ABSL_GUARDED_BY(context_.mutex);

  uint64_t next_request_ ABSL_GUARDED_BY(context_.mutex) = 1;
  Pending pending_ ABSL_GUARDED_BY(context_.mutex);
  FillCursor fill_ ABSL_GUARDED_BY(context_.mutex);
  uint64_t moved_ ABSL_GUARDED_BY(context_.mutex) = 0;  // bytes of the fill or copy moved so far
  uint64_t to_move_ ABSL_GUARDED_BY(context_.mutex) = 0;
  state::Snapshot* copy_ ABSL_GUARDED_BY(context_.mutex) = nullptr;
  uint64_t copy_request_ ABSL_GUARDED_BY(context_.mutex) = 0;
  Mutex piece_mutex_;  // held by the thread that reads a piece; locked before context_.mutex
  PieceRead piece_read_ ABSL_GUARDED_BY(context_.mutex);
  const std::shared_ptr<rpc::BufferPool> fill_buffers_ =
      rpc::BufferPool::Create(2 * state::kPieceBytes);
};

}  // namespace tfjob::ps
