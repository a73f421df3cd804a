// What ps 0's coordinator and the servers' participants say to each other. Every message may be
// lost, doubled and late; epochs and names make that harmless.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/ps/protocol/ledger.h"

namespace tfjob::ps::protocol {

// A message that may have been lost is sent again after this long.
inline constexpr Duration kRepeatAfter = std::chrono::milliseconds(500);

// Participant → coordinator.
struct Hello {  // on connecting, and until something is heard
  int64_t incarnation = 0;
  int64_t epoch = 0;  // 0: no state
  int64_t step = 0;   // commits before it are applied
  bool operator==(const Hello&) const = default;
};
struct StagedReport {  // the contribution is whole here, and kept
  int64_t epoch = 0;
  int64_t step = 0;  // that it was computed for
  Name name;
  bool operator==(const StagedReport&) const = default;
};
struct AppliedReport {
  int64_t epoch = 0;
  int64_t step = 0;  // commits before it are applied
  bool operator==(const AppliedReport&) const = default;
};
using ToCoordinator = std::variant<Hello, StagedReport, AppliedReport>;

// Coordinator → participant.
struct Commit {  // apply the mean of these as step `step`
  int64_t epoch = 0;
  int64_t step = 0;
  std::vector<Name> set;  // in the order of summation
  bool operator==(const Commit&) const = default;
};
struct Abort {  // states of this epoch and older ones are void
  int64_t epoch = 0;
  bool operator==(const Abort&) const = default;
};
using ToParticipant = std::variant<Commit, Abort>;

// One line of text, and back; nothing when it is no message.
std::string Encode(const ToCoordinator& message);
std::string Encode(const ToParticipant& message);
std::optional<ToCoordinator> DecodeToCoordinator(const std::string& text);
std::optional<ToParticipant> DecodeToParticipant(const std::string& text);

}  // namespace tfjob::ps::protocol
