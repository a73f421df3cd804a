// Reports which members a group has lost from one generation to the next.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/collectives/membership/group.h"
#include "runtime/state/peer.h"

namespace tfjob::strategy {

// Not thread-safe.
class Losses {
 public:
  // Why the present generation has ended. With `departs`, a member has announced that it exits, so
  // members that are missing afterwards do not count as lost.
  void Explain(std::string why, bool departs = false) {
    why_ = std::move(why);
    departs_ = departs;
  }
  // These members have announced that they exit, so they do not count as lost.
  void Depart(const std::vector<collectives::Member>& members);
  // All members of a new generation have the state after `step`. Reports each member of the
  // previous one whose process is missing (PeerEvent::Kind::kDropped), and each task that was
  // missing and is back (kRejoined).
  void Note(const std::vector<collectives::Member>& members, int64_t step,
            const state::PeerEventSink& on_event);

 private:
  std::vector<collectives::Member> members_;  // of the previous generation; empty: none
  std::set<std::string> departed_;            // tasks
  std::set<std::string> missing_;             // lost tasks that have not returned
  std::string why_;
  bool departs_ = false;
};

}  // namespace tfjob::strategy
