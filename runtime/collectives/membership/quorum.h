// Decides which processes may continue if members of the last generation are missing.
//
// A process remembers the last shared generation, that is, the last one whose members have all
// exchanged data. It also remembers any later generations that began, if it does not know whether
// all of their members took part. Two sides that are cut off from each other cannot both continue,
// because each needs a majority of every one of these generations: more than half of the members,
// or exactly half if the generation's leader is one of them. This is dynamic voting: see Keidar,
// Lotem and Dolev, "Dynamic Voting for Consistent Primary Components" (PODC 1997).
//
// Processes count, not tasks, because a restarted process remembers no generations. A process that
// has resigned (left or departed) no longer counts in earlier generations.
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
  // Records that the generation has begun for this process.
  void Begin(const FormOrder& order);
  // Records that all members of the generation have exchanged data, so that earlier generations no
  // longer matter.
  void Share(int64_t generation);
  // Records that this process no longer counts in the generations that it remembers.
  void Resign();
  // Returns the generations, oldest first. If any generation is shared, it is the first one.
  const std::vector<PastGeneration>& past() const { return past_; }

 private:
  std::vector<PastGeneration> past_;
};

// A process that takes part in the vote, and the generations that it remembers.
struct Vote {
  Participant process;
  std::span<const PastGeneration> past;
};

// Returns the generations of which a side needs a majority: the newest shared generation that any
// of the processes remembers, followed by all other generations, shared or not, that any of them
// remembers and that are not older. Returns an empty list if no process remembers a shared
// generation. In that case, only all tasks together may begin.
std::vector<const PastGeneration*> GenerationsToContinue(std::span<const Vote> votes);

// Returns whether the members that are present are a majority of the generation. Absent members
// that have resigned are not counted as members.
bool IsMajority(const PastGeneration& generation,
                const std::function<bool(const Participant&)>& is_present,
                const std::function<bool(const Participant&)>& has_resigned);

// Returns whether these processes may continue without the other processes.
bool HaveMajority(std::span<const Vote> votes,
                  const std::function<bool(const Participant&, int64_t generation)>& has_resigned);

}  // namespace tfjob::collectives
