// Implements a server's part of the synchronous protocol: decides which contributions the server
// keeps, which set it applies next, and how it answers each worker.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/ps/protocol/messages.h"

namespace tfjob::ps::protocol {

// Answers a worker's exchange. The worker receives the values of `step` or of a later step.
struct Answer {
  Name name;
  int64_t step = 0;
  bool dropped = false;
  bool operator==(const Answer&) const = default;
};

// A position in a worker's data: the first `count` of its batches have been drawn.
struct Drawn {
  Worker worker;
  int64_t count = 0;
  bool operator==(const Drawn&) const = default;
};

// The actions that the caller must take. `merge`, `measure` and `apply` must be carried out one at
// a time, in the order in which they were returned. `apply` must come before `forget`, because it
// needs staged bytes that `forget` frees. `messages` must come last, because the coordinator on ps
// 0 may reply to a message at once, and the reply yields further actions.
struct ParticipantActions {
  std::vector<ToCoordinator> messages;
  // Apply the mean of these contributions, summed in the order of the set, then call Applied. Their
  // bytes must be kept until then.
  std::optional<Commit> apply;
  // The sums of squares of the whole mean, over all servers, if the commit in `apply` was measured.
  std::vector<double> squares;
  // Sum these contributions in the order of the set, then call Measured with the sums of squares of
  // this server's part of their mean. `apply` follows.
  std::optional<Commit> measure;
  // Sum the second contribution into the first, whose bytes then contain the sum.
  std::optional<Merge> merge;
  // The positions that the state has reached. They must be recorded before `answers` are sent.
  std::vector<Drawn> drawn;
  std::vector<Answer> answers;
  // Free the staged bytes of these contributions.
  std::vector<Name> forget;
  // Refuse the exchanges of these contributions, because the state from which they were computed is
  // void, or because a later process of their worker has joined.
  std::vector<Name> refused;
  bool voided = false;  // the state is void; the server is now empty
};

// Not thread-safe. The caller passes in every event and the time.
class Participant {
 public:
  explicit Participant(int64_t incarnation) : incarnation_(incarnation) {}

  // Called after the server has been filled with the state of `step` under `epoch`. Voids any
  // earlier state. `backups` means that more workers train than a step needs: a batch then counts
  // as drawn even if its gradient is dropped. Otherwise, the worker is expected to compute the
  // batch again. If `measured` is true, the state's commits are measured (see Commit).
  ParticipantActions Fill(Duration now, int64_t epoch, int64_t step, bool backups = false,
                          bool measured = false);
  // Called when the server no longer has a valid state. Drops all staged contributions and refuses
  // their exchanges.
  ParticipantActions Void();

  // Returns whether the bytes of the contribution are needed. Returns false if the contribution is
  // already staged, if its step is decided or too far ahead, or if `epoch` is not the current one.
  bool Wants(int64_t epoch, int64_t step, const Name& name) const;
  // Called after all bytes of the contribution have arrived, even if they are not needed. Reports
  // the contribution to the coordinator, or answers or refuses its exchange. See StagedReport for
  // `drawn`.
  ParticipantActions Staged(int64_t epoch, int64_t step, const Name& name, int64_t drawn = 0);
  ParticipantActions OnMessage(const ToParticipant& message);
  // Called after a `measure` has been carried out. Reports the squares to the coordinator.
  ParticipantActions Measured(int64_t epoch, int64_t step, std::vector<double> squares);
  // Called after an `apply` has been carried out. Answers the contributions whose step is now
  // decided, and reports the step to the coordinator.
  ParticipantActions Applied(int64_t epoch, int64_t step);
  // Called when a new connection to the coordinator is up. Sends the hello and reports the staged
  // contributions.
  ParticipantActions Connected(Duration now);
  // Called periodically. Repeats the hello and the reports of staged contributions.
  ParticipantActions Tick(Duration now);

  int64_t epoch() const { return epoch_; }
  int64_t step() const { return step_; }

 private:
  void Repeat(Duration now, ParticipantActions& actions);
  void OnCommit(const Commit& commit, ParticipantActions& actions);
  void OnMerge(const Merge& merge, ParticipantActions& actions);
  void OnForget(const Forget& forget, ParticipantActions& actions);
  void OnTotals(const Totals& totals, ParticipantActions& actions);
  void ReportSquares(ParticipantActions& actions) const;
  struct Contribution {
    int64_t step = 0;  // the step that it was computed for
    int64_t drawn = 0;
  };
  bool Current(int64_t epoch) const { return epoch_ != 0 && epoch == epoch_; }

  const int64_t incarnation_;
  int64_t epoch_ = 0;  // 0: no state
  int64_t step_ = 0;
  bool backups_ = false;
  bool measured_ = false;
  std::map<Name, Contribution> staged_;
  std::set<Name> merged_;  // the staged contributions that were summed into another
  std::optional<Commit> applying_;
  std::vector<double> squares_;  // the squares of a measured commit that waits for its totals
  Ledger applied_;               // the contributions applied since the state was filled
  Duration repeated_{0};
};

}  // namespace tfjob::ps::protocol
