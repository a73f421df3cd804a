// Defines the messages between the coordinator on ps 0 and the participant on each server. A
// message may be lost, duplicated or delayed. Messages contain epochs and names of contributions,
// so the receiver recognises outdated and repeated messages.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/ps/protocol/ledger.h"

namespace tfjob::ps::protocol {

// The time after which a message that may have been lost is repeated.
inline constexpr Duration kRepeatAfter = std::chrono::milliseconds(500);

// Participant → coordinator.
struct Hello {              // sent on connecting, then repeated
  int64_t incarnation = 0;  // on ps 0: the incarnation that ps 0 has issued to the sending process
  int64_t epoch = 0;        // 0: no state
  int64_t step = 0;         // all commits to earlier steps are applied
  bool operator==(const Hello&) const = default;
};
struct StagedReport {  // all bytes of the contribution have arrived and are kept
  int64_t epoch = 0;
  int64_t step = 0;  // the step that it was computed for
  Name name;
  int64_t drawn = 0;  // the worker's batches drawn so far, including this one; 0: not counted
  bool operator==(const StagedReport&) const = default;
};
struct AppliedReport {
  int64_t epoch = 0;
  int64_t step = 0;  // all commits to earlier steps are applied
  bool operator==(const AppliedReport&) const = default;
};
// Reports the sums of squares of this server's part of a measured commit's mean, one per group (a
// variable, or all variables combined).
struct SquaresReport {
  int64_t epoch = 0;
  int64_t step = 0;  // the step of the commit
  std::vector<double> squares;
  bool operator==(const SquaresReport&) const = default;
};
using ToCoordinator = std::variant<Hello, StagedReport, AppliedReport, SquaresReport>;

// Coordinator → participant.
struct Commit {  // apply the mean of `set` as step `step`
  int64_t epoch = 0;
  int64_t step = 0;
  std::vector<Name> set;  // in the order of summation; not empty
  bool measured = false;  // report the mean's squares, and apply the mean once the Totals arrive
  // The learning rate of this step and the later ones. If unset, the rate does not change.
  std::optional<double> learning_rate = {};
  bool operator==(const Commit&) const = default;
};
struct Abort {  // the states of this and all earlier epochs are void
  int64_t epoch = 0;
  bool operator==(const Abort&) const = default;
};
// Requests the sum of two contributions that will both be in the step's commit: add `from` to
// `into`, and free the bytes of `from`. The sum is kept under the name `into`. A participant that
// misses this message computes the same sum, in the same order, when the commit arrives.
struct Merge {
  int64_t epoch = 0;
  int64_t step = 0;
  Name into;
  Name from;
  bool operator==(const Merge&) const = default;
};
// Permits the servers to apply the measured commit of the step. `squares` contains, per group, the
// sum of the values that all servers have reported.
struct Totals {
  int64_t epoch = 0;
  int64_t step = 0;
  std::vector<double> squares;
  bool operator==(const Totals&) const = default;
};
// Requests that the bytes of a contribution to the step be freed. The contribution will never be in
// the step's commit, because a later process of its worker joined before every server had staged
// the contribution.
struct Forget {
  int64_t epoch = 0;
  int64_t step = 0;
  Name name;
  bool operator==(const Forget&) const = default;
};
using ToParticipant = std::variant<Commit, Abort, Merge, Totals, Forget>;

// Convert a message to and from one line of text. Decoding returns nullopt if the line is not a
// message.
std::string Encode(const ToCoordinator& message);
std::string Encode(const ToParticipant& message);
std::optional<ToCoordinator> DecodeToCoordinator(const std::string& text);
std::optional<ToParticipant> DecodeToParticipant(const std::string& text);

}  // namespace tfjob::ps::protocol
