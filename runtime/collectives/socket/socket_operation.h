// Moves the frames of one operation at a time between the ranks, and sleeps in poll while there is
// no frame to move. Private to this package.
#pragma once

#include <poll.h>

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/mutex.h"
#include "runtime/collectives/communicator.h"
#include "runtime/collectives/plan/plan_run.h"
#include "runtime/collectives/socket/socket_link.h"

namespace tfjob::collectives {

class SocketOperations {
 public:
  SocketOperations(int rank, std::vector<wire::UniqueFd> sockets, std::vector<std::string> tasks,
                   wire::UniqueFd wake, Duration announce_after);

  // Called with the plan in progress and a neighbour's rank when the place of the neighbour's span
  // has arrived. An error ends the operation.
  using Learn = std::function<Status(PlanRun&, int rank)>;
  void set_learn(Learn learn) { learn_ = std::move(learn); }

  int rank() const { return rank_; }
  int ranks() const { return static_cast<int>(peers_.size()); }

  // Starts an operation, or returns the communicator's first error, if there was one. If Begin
  // returns OK, End must follow on the same thread.
  Status Begin(const Call& call);
  // Executes the plan of the operation. Call run.Start first.
  Status Drive(PlanRun& run);
  // Ends the operation, and returns the communicator's first error, or `status` if there is none.
  // An error is sent to the other ranks.
  Status End(const Status& status);

  // See SocketCommunicator.
  Status CheckPeers();
  // See Communicator.
  void Abort(const Status& why);
  Waiting CurrentWait() const;
  // Notifies the other ranks that this rank has left. Called when the communicator is destroyed.
  void Leave();

 private:
  struct Peer {
    std::unique_ptr<SocketLink> link;           // null for this rank
    bool sending = false;                       // a transfer of the plan is in progress
    std::array<char, kMostReasonBytes> reason;  // the payload of kAbort and kLeave
    Status left;                                // why the rank has left
    // The last operation in which the peer has announced that it waits. This rank may not have
    // reached that operation yet.
    int64_t announced = 0;
    Call announced_call;
    int announcements = 0;  // made by the peer since this rank's operation started
    int64_t heard = 0;      // the latest operation for which the peer has sent a frame
    bool moved = false;     // data have moved since this rank last waited for the peer
  };
  // The number of this rank's latest calls to keep for comparison with the calls that other ranks
  // announce.
  static constexpr size_t kRemembered = 8;
  // The maximum number of a peer's announcements during one operation of this rank. All ranks call
  // the same operations, and a peer announces an operation only after waiting in it for a while, so
  // a peer announces few operations before this rank has finished its own.
  static constexpr int kMostAnnouncements = 64;

  Status CheckWhatHasArrived();
  StatusOr<bool> Move(int rank);
  Status LastWords(int rank);
  StatusOr<bool> SendTo(int rank);
  StatusOr<bool> ReceiveFrom(int rank);
  StatusOr<bool> ReceiveData(int rank);
  StatusOr<bool> ReceiveReason(int rank);
  Status CheckHeader(int rank, const FrameHeader& header) const;
  Status TakeAnnouncement(int rank, const FrameHeader& header);
  Status CheckAnnounced(int rank, int64_t operation, const Call& call) const;
  const Call* PastCall(int64_t operation) const;
  Status CheckTransfer(int rank, const FrameHeader& header,
                       const PlanRun::Transfer& expected) const;
  Status Mismatch(int rank, int64_t operation, const Call& call, int64_t own_operation,
                  const Call& own) const;
  Status Lost(int rank) const;
  Status Wait();
  Status Poll(int timeout_ms);
  Status ReadNotices();
  Status CheckPeer(int rank);
  void NoteWait(int rank, Duration now);
  void PreparePoll();
  int RankToWaitFor() const;
  int PollTimeoutMs(Duration now);
  void Announce();
  FrameHeader Header(FrameKind kind) const;
  void Part(FrameKind kind) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string NameOf(int rank) const;

  const int rank_;
  const std::vector<std::string> tasks_;
  const wire::UniqueFd wake_;
  const Duration announce_after_;
  Learn learn_;
  std::atomic<bool> aborted_{false};

  // The members up to mutex_ are used by the operation's thread. Another thread may use them only
  // with the lock, while busy_ is false.
  std::vector<Peer> peers_;     // by rank
  std::vector<pollfd> polled_;  // by rank, then the eventfd
  PlanRun* run_ = nullptr;
  int64_t operation_ = 0;
  Call call_;
  std::array<Call, kRemembered> calls_;  // by the operation's number modulo kRemembered
  std::optional<Duration> announce_at_;  // set when an operation first waits
  bool announced_ = false;
  int waits_for_ = -1;  // the rank of the last wait in this operation
  Duration waits_since_{0};

  mutable Mutex mutex_;
  Status failure_ ABSL_GUARDED_BY(mutex_);
  bool busy_ ABSL_GUARDED_BY(mutex_) = false;
  bool parted_ ABSL_GUARDED_BY(mutex_) = false;
  Waiting waiting_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tfjob::collectives
