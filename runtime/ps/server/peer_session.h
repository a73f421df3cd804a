// Implements the server's end of one peer's stream: receives requests and contributions, and sends
// values and state. Private to this package.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/mutex.h"
#include "runtime/kernels/stream.h"
#include "runtime/ps/server/peer_role.h"
#include "runtime/ps/server/store.h"
#include "runtime/ps/server/table_copy.h"
#include "runtime/ps/wire.h"
#include "runtime/rpc/buffer_pool.h"
#include "runtime/rpc/connection.h"

namespace tfjob::ps {

class Service;
struct ServerOptions;
class Staging;

// Any thread may call Answer, Refuse, ReplyTo, Resume, SayFinished and SayFailed. Only the
// connection calls OnFrame and NextFrame.
class PeerSession : public rpc::ConnectionHandler {
 public:
  PeerSession(Service& service, rpc::Identity peer, std::string address, rpc::Transport& transport,
              const ServerOptions& options);
  ~PeerSession() override;

  rpc::Connection& connection() { return connection_; }
  const rpc::Identity& peer() const { return peer_; }
  // Returns the incarnation of the peer's process (incarnations.h), or 0 while it is unknown.
  int64_t incarnation() const { return incarnation_; }
  void set_incarnation(int64_t incarnation) { incarnation_ = incarnation; }
  const std::string& address() const { return address_; }
  protocol::Worker worker() const { return {peer_.task_type, peer_.task_index}; }

  // Ends the exchange `sequence`, if it is the current one, by sending all values (`with_values`)
  // or none. See wire::kValues for `step`, `flags` and `value`.
  void Answer(uint64_t sequence, int64_t step, uint16_t flags, int64_t value, bool with_values);
  void Refuse(uint64_t sequence, const Status& why);
  // Answers the request `sequence`.
  void ReplyTo(uint64_t sequence, const Status& status);
  // Sends kFinished, which ends the job for the peer, after all other frames.
  void SayFinished();
  // Refuses the contribution, if any, that arrived while the server was frozen, so that its sender
  // repeats it.
  void Resume();
  // Notifies a training task that the run has failed.
  void SayFailed(const Status& failure);

  void OnFrame(rpc::IncomingFrame& frame) override;
  bool TakesInPlace(const rpc::FrameHeader& header) const override;
  bool NextFrame(rpc::OutgoingFrame& frame) override;

 private:
  // A contribution being received; reader thread only.
  struct Push {
    std::shared_ptr<Store> store;  // null: the contribution is refused
    bool synchronous = false;      // whether `store` is synchronous
    protocol::Name name;
    int64_t step = 0;
    int64_t drawn = 0;                 // see wire::kDrawn
    size_t remaining = 0;              // shards still to come
    std::shared_ptr<Staging> staging;  // synchronous; null if the bytes are not needed
    // The shard in progress (-1: none). The first `received` of its update's `expected` bytes have
    // arrived. An update that arrives as rows has `rows` rows.
    int shard = -1;
    size_t received = 0, expected = 0;
    int64_t rows = 0;
    rpc::OwnedLease update;  // asynchronous: the shard's gradient
  };
  // A request for rows being received; reader thread only.
  struct RowRequest {
    std::shared_ptr<Store> store;  // null: no request is being received
    uint64_t sequence = 0;
    int last_shard = -1;  // the last shard whose indices have arrived
    // The shard in progress (-1: none). `received` bytes of its indices have arrived.
    int shard = -1;
    int64_t count = 0;
    size_t received = 0;
    rpc::OwnedLease indices;
  };
  // A part of an answer: the value of a shard, or `count` rows of it, whose indices are in `rows`.
  struct ReplyPart {
    int shard = 0;
    size_t bytes = 0;
    rpc::OwnedLease rows = nullptr;
    int64_t count = 0;
  };
  // The answer being sent. Used by the reader thread, the writing thread and callers of Answer.
  struct Reply {
    std::shared_ptr<Store> store;
    uint64_t sequence = 0;
    std::vector<ReplyPart> parts;  // the parts that are ready
    size_t sent = 0;               // number of these parts already sent
    size_t offset = 0;             // bytes of the next part already sent
    size_t bytes = 0;              // bytes that are ready and not yet sent
    bool last = false;             // whether `final` is known
    rpc::FrameHeader final;

    void Begin(std::shared_ptr<Store> of, uint64_t number);
    void Add(ReplyPart part);
  };
  struct CopyRequest {
    std::shared_ptr<Store> store;  // null: no copy is requested
    uint64_t sequence = 0;
    std::string ledger;  // the ledger of the kept shards of tables
  };
  // A request for a piece of a table that this session keeps.
  struct PieceRequest {
    uint64_t copy = 0;  // the sequence number of the kSnapshot frame
    uint64_t sequence = 0;
    wire::CopyPiece piece;
  };
  // A copy of the state, sent shard by shard; used only by the writing thread.
  struct Copy {
    CopyRequest of;
    size_t next = 0;  // the shard after the one being sent, as an index in whole_shards()
    std::string ledger;
    // The shard being sent, with its slots, as of one moment. Null if the next shard must be
    // copied.
    rpc::OwnedLease state;
    size_t part = 0;  // the part to send next (0: the value; from 1: the slots)
    size_t offset = 0;
  };
  // A byte range within one part of an answer, to be sent in one frame. If the part has rows, the
  // range covers whole rows, whose indices are elements [first_row, first_row + rows) of `indices`.
  struct Chunk {
    int shard = 0;
    size_t offset = 0;
    size_t bytes = 0;
    rpc::OwnedLease indices = nullptr;
    size_t first_row = 0, rows = 0;
  };

  // Returns whether the peer's role permits this frame. If not, reports the error to the peer.
  bool Allowed(const rpc::FrameHeader& header);
  void Request(rpc::IncomingFrame& frame);
  void Register(const rpc::FrameHeader& header);
  void Announce(int64_t incarnation);
  void BeginFill(rpc::IncomingFrame& frame);
  void Fill(rpc::IncomingFrame& frame);
  void EndFill(rpc::IncomingFrame& frame);
  void BeginCopy(uint64_t sequence);
  // Keeps the tables until DropCopy is called or the session is closed. Returns the ledger of the
  // tables.
  StatusOr<std::string> KeepTables(const std::shared_ptr<Store>& store, uint64_t sequence);
  void ReadCopy(const rpc::FrameHeader& header, std::string_view body);
  Status AddPiece(const rpc::FrameHeader& header, std::string_view body);
  Status ReadPiece(const PieceRequest& request, std::span<std::byte> to)
      ABSL_LOCKS_EXCLUDED(mutex_);
  void DropCopy(uint64_t number);
  // Drops the copies of all states except the newest state that has copies. If this server does not
  // have memory for two states, drops all copies. Called before the state is replaced.
  void DropOldCopies();
  void Pull(const rpc::FrameHeader& header);

  void OnPush(rpc::IncomingFrame& frame);
  void OnPullRows(rpc::IncomingFrame& frame);
  Status TakeRowNumbers(rpc::IncomingFrame& frame, const rpc::SegmentInfo& segment);
  Status BeginRowNumbers(const rpc::SegmentInfo& segment);
  Status EndRowNumbers();
  Status EndPullRows();
  bool BeginExchange(const rpc::FrameHeader& header);
  bool BeginPush(const rpc::FrameHeader& header);
  Status TakeSegment(rpc::IncomingFrame& frame, const rpc::SegmentInfo& segment);
  // Prepares to receive the update of a shard, which the shard's first segment describes.
  Status BeginShard(const rpc::SegmentInfo& segment);
  Status BeginRows(const ShardRows& rows, const rpc::SegmentInfo& segment);
  Status TakeBytes(rpc::IncomingFrame& frame, const rpc::SegmentInfo& segment);
  // Called when the shard's update is complete: checks its rows, if any, and applies it in
  // asynchronous mode.
  Status EndShard();
  // Applies the update in push_, in asynchronous mode.
  Status ApplyNow(Store& store, int shard);
  void EndPush();
  void PutOff(uint64_t sequence);

  void SendRefusal(uint64_t sequence, const Status& why);
  // Sends the values that are ready. If `from_here` is set, the calling thread may write them.
  void SendValues(bool from_here);
  bool NextValues(rpc::OutgoingFrame& frame) ABSL_LOCKS_EXCLUDED(mutex_);
  size_t PlanValues(rpc::OutgoingFrame& frame) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Chunk NextChunk() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  static void CopyChunk(Store& store, const Chunk& chunk, std::span<std::byte> to);
  bool NextCopy(rpc::OutgoingFrame& frame) ABSL_LOCKS_EXCLUDED(mutex_);
  bool NextPiece(rpc::OutgoingFrame& frame) ABSL_LOCKS_EXCLUDED(mutex_);
  std::optional<PieceRequest> TakePiece() ABSL_LOCKS_EXCLUDED(mutex_);
  bool NextCopiedShard();
  void AppendCopy(rpc::OutgoingFrame& frame);

  Service& service_;
  const rpc::Identity peer_;
  const PeerRole role_;
  std::atomic<int64_t> incarnation_ = 0;
  const std::string address_;
  kernels::Stream stream_;
  const std::shared_ptr<rpc::BufferPool> buffers_;  // shared by all sessions

  Push push_;
  RowRequest wanted_;
  std::shared_ptr<Store> fill_;
  Status fill_status_;

  Mutex mutex_;
  Reply reply_ ABSL_GUARDED_BY(mutex_);
  CopyRequest copy_request_ ABSL_GUARDED_BY(mutex_);
  // The kept tables, by the sequence number of the kSnapshot frame, and the pieces to send.
  std::map<uint64_t, std::shared_ptr<const TableCopy>> kept_ ABSL_GUARDED_BY(mutex_);
  std::deque<PieceRequest> pieces_ ABSL_GUARDED_BY(mutex_);
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;  // kFinished must be sent
  // See Resume.
  std::optional<uint64_t> put_off_ ABSL_GUARDED_BY(mutex_);
  Copy copy_;
  // Contents of the frame being written.
  std::vector<Chunk> chunks_;
  std::string text_;

  rpc::Connection connection_;
};

}  // namespace tfjob::ps
