// Implements a server's part in the synchronous protocol: decides which contributions the server
// keeps, which set it applies next, and how it answers each worker.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/ps/protocol/messages.h"

namespace tfjob::ps::protocol {

// Ends a worker's exchange with the values at `step` (or later).
struct Answer {
  Name name;
  int64_t step = 0;
  bool dropped = false;
  bool operator==(const Answer&) const = default;
};

// What the caller must do, in this order.
struct ParticipantActions {
  std::vector<ToCoordinator> messages;
  // Apply the mean of these, in this order, then call Applied. Their bytes are kept until then.
  std::optional<Commit> apply;
  std::vector<Answer> answers;
  // Free the staged bytes of these.
  std::vector<Name> forget;
  // Refuse the exchanges of these: the state they were meant for is void.
  std::vector<Name> refused;
  bool voided = false;  // the state is void: the server is empty
};

// Not thread-safe. The caller passes in every event and the time.
class Participant {
 public:
  explicit Participant(int64_t incarnation) : incarnation_(incarnation) {}

  // The server holds the state of `step` under `epoch`. Any earlier state is void.
  ParticipantActions Fill(Duration now, int64_t epoch, int64_t step);
  // The server's state is void.
  ParticipantActions Void();

  // Returns whether the bytes of this contribution are needed: false if it is staged or decided.
  bool Wants(int64_t epoch, int64_t step, const Name& name) const;
  // The contribution is complete: its bytes have arrived, or are not needed.
  ParticipantActions Staged(int64_t epoch, int64_t step, const Name& name);
  ParticipantActions OnMessage(const ToParticipant& message);
  // An `apply` has been carried out.
  ParticipantActions Applied(int64_t epoch, int64_t step);
  // A new connection to the coordinator is up.
  ParticipantActions Connected(Duration now);
  // Called periodically. Repeats unanswered messages.
  ParticipantActions Tick(Duration now);

  int64_t epoch() const { return epoch_; }
  int64_t step() const { return step_; }

 private:
  void Repeat(Duration now, ParticipantActions& actions);
  void OnCommit(const Commit& commit, ParticipantActions& actions);
  bool Current(int64_t epoch) const { return epoch_ != 0 && epoch == epoch_; }

  const int64_t incarnation_;
  int64_t epoch_ = 0;  // 0: no state
  int64_t step_ = 0;
  std::map<Name, int64_t> staged_;  // to the step it was computed for
  std::optional<Commit> applying_;
  Ledger applied_;  // in this epoch
  Duration repeated_{0};
};

}  // namespace tfjob::ps::protocol
