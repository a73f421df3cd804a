// Decides which processes may go on if members of the last generation are missing.
//
// A process remembers the last generation whose members have all exchanged data (it is shared), and
// later generations that began, but of which the process does not know whether all members took
// part. Two sides that are cut off from each other cannot both go on, because each needs a majority
// of all of these generations: more than half of the members, or exactly half if the generation's
// leader is one of them. This is dynamic voting: see Keidar, Lotem and Dolev, "Dynamic Voting for
// Consistent Primary Components" (PODC 1997).
//
// Only processes count, not tasks: a process that was restarted remembers nothing. A process that
// has resigned (it has left or departed) counts no more in the generations before.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "runtime/collectives/membership/membership_messages.h"

namespace tfjob::collectives {

// The generations that a process remembers. Not thread-safe.
class GenerationHistory {
 public:
  // The generation has begun for this process.
  void Begin(const FormOrder& order);
  // All members of the generation have exchanged data, so earlier generations no longer matter.
  void Share(int64_t generation);
  // This process no longer counts in the generations that it remembers.
  void Resign();
  // Oldest first; the first one is shared if any is.
  const std::vector<PastGeneration>& past() const { return past_; }

 private:
  std::vector<PastGeneration> past_;
};

// A process that is present, and what it remembers.
struct Vote {
  Participant process;
  std::span<const PastGeneration> past;
};

// Returns the generations of which a side needs a majority: the last shared one that any of the
// processes remembers, which comes first, and all later ones that any of them remembers. Returns
// nothing if no process remembers a shared generation; then only all tasks together may begin.
std::vector<const PastGeneration*> GenerationsToContinue(std::span<const Vote> votes);

// Returns whether the members that are present are a majority of the generation. Members that
// have resigned, and are not present, do not count.
bool IsMajority(const PastGeneration& generation,
                const std::function<bool(const Participant&)>& is_present,
                const std::function<bool(const Participant&)>& has_resigned);

// Returns whether these processes may go on without all others.
bool HaveMajority(std::span<const Vote> votes,
                  const std::function<bool(const Participant&, int64_t generation)>& has_resigned);

}  // namespace tfjob::collectives
