#include "runtime/strategy/group/losses.h"

#include <algorithm>

#include "runtime/base/status.h"
#include "runtime/collectives/membership/membership_messages.h"

namespace tfjob::strategy {
namespace {

// Returns the part of the reason that concerns the member. The whole reason usually contains the
// member's name, too: "generation 3 has ended: worker 2 (host:port) was lost: …".
std::string ReasonFor(const std::string& name, const std::string& why) {
  const std::string key = name + " was lost: ";
  const size_t at = why.find(key);
  if (at != std::string::npos) return why.substr(at + key.size());
  return why.empty() ? "the reason is not known" : why;
}

}  // namespace

void Losses::Depart(const std::vector<collectives::Member>& members) {
  for (const collectives::Member& member : members) departed_.insert(member.task);
}

void Losses::Note(const std::vector<collectives::Member>& members, int64_t step,
                  const state::PeerEventSink& on_event) {
  using Kind = state::PeerEvent::Kind;
  const auto say = [&](Kind kind, const collectives::Member& member, const std::string& text) {
    on_event({.kind = kind,
              .peer = member.task,
              .address = member.address,
              .message = StrCat(collectives::Describe(member), text)});
  };
  for (const collectives::Member& earlier : members_) {
    const auto now = std::ranges::find(members, earlier.task, &collectives::Member::task);
    const bool stays = now != members.end() && now->incarnation == earlier.incarnation;
    if (stays || departs_ || departed_.contains(earlier.task)) continue;
    const bool replaced = now != members.end();
    if (!replaced) missing_.insert(earlier.task);
    const std::string follows =
        replaced
            ? "its new process takes part"
            : StrCat(members.size(), members.size() == 1 ? " task continues" : " tasks continue");
    say(Kind::kDropped, earlier,
        StrCat(" was lost at step ", step, ": ", ReasonFor(collectives::Describe(earlier), why_),
               "; ", follows));
    if (replaced) say(Kind::kRejoined, *now, " takes part again");
  }
  for (const collectives::Member& member : members) {
    if (missing_.erase(member.task) > 0) say(Kind::kRejoined, member, " takes part again");
  }
  members_ = members;
  departed_.clear();
  why_.clear();
  departs_ = false;
}

}  // namespace tfjob::strategy
