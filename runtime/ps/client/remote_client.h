// Implements ParameterClient over one link per server. Private to this package.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/ps/client/copied_tables.h"
#include "runtime/ps/client/link.h"

namespace tfjob::ps {

// How long to wait for the answer to a request. Servers answer at once, except that ps 0 answers a
// request for a hold only when all servers are at the same step.
inline constexpr Duration kRequestTimeout{10s};
// The interval at which a wait checks whether the task was asked to stop.
inline constexpr Duration kStopInterval{250ms};

class RemoteClient : public ParameterClient {
 public:
  RemoteClient(ClientOptions options, std::unique_ptr<rpc::Connector> own_connector);
  ~RemoteClient() override;

  StatusOr<StepResult> WaitReady(std::span<const std::span<std::byte>> values) override;
  Status BeginStep(std::span<const std::span<const std::byte>> gradients,
                   std::span<const std::span<std::byte>> values, int64_t drawn,
                   std::span<const std::span<const int64_t>> indices) override;
  StatusOr<bool> PullRows(std::span<const std::span<const int64_t>> indices,
                          std::span<const std::span<std::byte>> rows) override;
  void MarkReady(int variable) override;
  StatusOr<StepResult> EndStep() override;
  StatusOr<state::Snapshot> TakeSnapshot() override;
  void SetLearningRate(const state::LearningRate& rate) override;
  std::optional<state::LearningRate> learning_rate() const override;
  Status Restore(const state::Snapshot& snapshot) override;
  Status Leave() override;
  Status Withdraw() override;
  Status Finish() override;
  Status Fail(const Status& failure) override;
  std::vector<state::PeerState> Peers() override;

 private:
  using Deadline = SteadyTime;
  static Deadline Now() { return SteadyNow(); }
  static constexpr Deadline kTold = Deadline::max();

  Status CheckGradient(size_t variable, std::span<const std::byte> gradient,
                       std::span<const int64_t> indices) const;
  Status CheckValues(std::span<const std::span<std::byte>> values) const;
  Status CheckRows(size_t variable, std::span<const int64_t> indices,
                   std::span<const std::byte> rows) const;
  // Returns whether the step's gradients are staler than max_staleness.
  StatusOr<bool> TooStale();
  void MarkLocked(int variable) ABSL_EXCLUSIVE_LOCKS_REQUIRED(context_.mutex);
  // Waits until the step is answered. During the wait, recovers from lost connections and servers.
  Status Complete();
  // Returns true once the step is answered, false if a link needs repair.
  StatusOr<bool> AwaitAnswers();
  bool OutdatedRows();
  // Makes all links ignore outstanding answers. Once Quiesce has returned, no reader writes into
  // the caller's spans. Without a deadline, Quiesce waits for the rest of a frame as long as the
  // server is alive.
  void Quiesce(std::optional<Deadline> deadline = {});
  // After Quiesce: once AwaitWriters has returned, no writer reads from the caller's spans either.
  // Disconnects servers that do not read what is being sent.
  void AwaitWriters();
  // Like Quiesce, but for use after a failure. Once Abandon has returned, no writer reads from the
  // caller's spans either.
  void Abandon();
  bool Torn();
  bool StopRequested() const;
  // Returns whether a task that was asked to stop should still wait for the answer to its gradient.
  bool EndsStepFirst();
  Status CheckStop();
  void TellOfLateStep();
  std::vector<Status> InParallel(const std::vector<size_t>& servers,
                                 const std::function<Status(size_t)>& act,
                                 const std::function<void(const std::vector<size_t>&)>& report);
  std::vector<size_t> AwaitSome(const std::vector<size_t>& pending);
  bool EndsWaits();
  void Interrupt(bool on);
  // Reports that servers are still being filled or copied, or have not yet acknowledged a request.
  void ReportTransfer(const char* doing, const std::vector<size_t>& servers);
  std::vector<size_t> AllServers() const;
  Status Repair();
  Status PauseAfterRefusals();
  std::vector<Status> RepairLinks();
  Status RepairLink(size_t server);
  bool NeedsRepair() ABSL_EXCLUSIVE_LOCKS_REQUIRED(context_.mutex);
  // Registers this process with ps 0, unless it is already registered. Returns whether it is
  // registered now. A first incarnation is requested only once every server has reported the
  // incarnations that it knows. Also requests the position in the data if ps 0 has been filled
  // since this process registered. Stores a refusal in registration_.
  bool Registered();
  // Asynchronous mode only. Called when ps 0 has a state of another epoch that counts `position`
  // batches of this task as drawn.
  void TakePosition(int64_t position) ABSL_EXCLUSIVE_LOCKS_REQUIRED(context_.mutex);
  Status ContinueAsynchronous();
  Status ContinueSynchronous();
  // Fills the given servers under one new epoch, which is higher than any earlier epoch of the job.
  Status Fill(const std::vector<size_t>& servers, const state::Snapshot& snapshot);
  Status FillFromChief(const std::vector<size_t>& servers);
  // Asynchronous mode only. Returns the rate for servers that are filled again: the one that the
  // other servers use.
  std::optional<state::LearningRate> RateOfOthers() const;
  // `tables` is null if the definition has none.
  Status TryCopy(state::Snapshot& snapshot, CopiedTables* tables);
  std::vector<size_t> EndingServers();
  Status SayLeave(rpc::FrameHeader header, Duration timeout);
  void SetHolding(bool holding);
  Status Copy(state::Snapshot& snapshot, CopiedTables* tables);
  state::Snapshot EmptySnapshot() const;
  Status TellAll(uint16_t type, const std::string& body);
  Status TellEnd(size_t server, uint16_t type, const std::string& body);
  StatusOr<StepResult> Result();
  void BeginWait();  // restarts the time that `patience` limits
  void Say(state::PeerEvent::Kind kind, const std::string& peers, const std::string& message) const;
  void ReportWait();
  std::string Awaited(std::string& peers);
  bool synchronous() const { return context_.options.definition.mode == Mode::kSynchronous; }

  mutable LinkContext context_;
  const std::unique_ptr<rpc::Connector> own_connector_;
  const uint64_t fingerprint_;
  std::vector<std::vector<int>> shards_of_;  // indexed by variable
  std::vector<std::unique_ptr<Link>> links_;
  std::shared_ptr<LinkGate> gate_;  // shared with copies, which may outlive the client
  // Used only by the caller's thread.
  std::vector<RemoteState> states_;  // indexed by server, as of the last query
  std::vector<bool> known_;          // indexed by server: whether its state is known
  Status registration_;              // result of the last attempt to register with ps 0
  int64_t epoch_ = 0;                // synchronous: epoch of the step
  int64_t step_ = 0;                 // step of the values that the caller has
  // Asynchronous mode only: registered_epoch_ is the epoch in which this process registered with ps
  // 0. position_ is set if the state of ps 0 was replaced, and is the position that the next result
  // must report. reported_position_ is the position that the last result reported, or -1.
  int64_t registered_epoch_ = 0;
  std::optional<int64_t> position_;
  int64_t reported_position_ = -1;
  // Set if the caller may have values that are older than step_: step_ is the step of ps 0, and
  // another server's values may have been requested earlier.
  bool undated_ = false;
  bool too_stale_ = false;    // the step's gradients are too stale to be sent
  bool rolled_back_ = false;  // the servers were rolled back since the last result
  Deadline deadline_{};       // when `patience` runs out
  Deadline refused_since_{};
  Deadline stop_seen_{};  // when the chief first saw the request to stop
  // When a server was first seen to be shutting down; kTold once on_late_step has been called.
  Deadline ending_since_{};
  Deadline next_report_{};
  std::unique_ptr<rpc::PeerWatch> watch_;
};

}  // namespace tfjob::ps
