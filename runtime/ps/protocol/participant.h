// A server's part in the synchronous protocol: which contributions it keeps, which set it applies
// next, and who is answered what.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/ps/protocol/messages.h"

namespace tfjob::ps::protocol {

// A worker's exchange ends: with the values at `step` (or later).
struct Answer {
  Name name;
  int64_t step = 0;
  bool dropped = false;
  bool operator==(const Answer&) const = default;
};

// What the caller has to do, in this order.
struct ParticipantActions {
  std::vector<ToCoordinator> messages;
  // Apply the mean of these, in this order, then call Applied. Their bytes are kept until then.
  std::optional<Commit> apply;
  std::vector<Answer> answers;
  // Staged bytes that nobody needs any more; of those in `refused` the exchanges end too, because
  // the state that they were meant for is void.
  std::vector<Name> forget;
  std::vector<Name> refused;
  bool voided = false;  // the state is void: the server is empty
};

// Not thread-safe. The caller hands in everything that happens, with the time.
class Participant {
 public:
  explicit Participant(int64_t incarnation) : incarnation_(incarnation) {}

  // The server holds the state of `step` under `epoch`; what was before is void.
  ParticipantActions Fill(Duration now, int64_t epoch, int64_t step);
  // The server's state is void.
  ParticipantActions Void();

  // Whether bytes of this contribution are wanted: not when it is staged or decided.
  bool Wants(int64_t epoch, int64_t step, const Name& name) const;
  // The contribution is whole: its bytes are here, or are not wanted.
  ParticipantActions Staged(int64_t epoch, int64_t step, const Name& name);
  ParticipantActions OnMessage(const ToParticipant& message);
  // An `apply` is carried out.
  ParticipantActions Applied(int64_t epoch, int64_t step);
  // There is a fresh connection to the coordinator.
  ParticipantActions Connected(Duration now);
  // Now and then: repeats what got no answer.
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
  std::map<Name, int64_t> staged_;  // → the step it was computed for
  std::optional<Commit> applying_;
  Ledger applied_;  // of this epoch
  Duration repeated_{0};
};

}  // namespace tfjob::ps::protocol
