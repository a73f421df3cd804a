#include "operator/control/fair_queue.h"

#include <utility>

namespace tfjob::control {
namespace {

std::string NamespaceOf(const std::string& key) {
  return key.substr(0, key.find('/'));
}

}  // namespace

FairQueue::Keys::iterator FairQueue::AddTo(Lane& lane, const std::string& key) {
  const std::string name_space = NamespaceOf(key);
  Keys& keys = lane.keys[name_space];
  if (keys.empty()) lane.turns.push_back(name_space);
  return keys.insert(keys.end(), key);
}

void FairQueue::RemoveFrom(Lane& lane, Keys::iterator key) {
  const auto keys = lane.keys.find(NamespaceOf(*key));
  keys->second.erase(key);
  if (!keys->second.empty()) return;
  lane.turns.remove(keys->first);
  lane.keys.erase(keys);
}

void FairQueue::Push(const std::string& key, Urgency urgency) {
  const auto queued = places_.find(key);
  if (queued != places_.end()) {
    if (queued->second.urgency >= urgency) return;
    RemoveFrom(LaneOf(queued->second.urgency), queued->second.at);
  }
  places_[key] = {urgency, AddTo(LaneOf(urgency), key)};
}

std::string FairQueue::TakeFrom(Lane& lane) {
  const auto keys = lane.keys.find(lane.turns.front());
  std::string key = std::move(keys->second.front());
  keys->second.pop_front();
  if (keys->second.empty()) {
    lane.keys.erase(keys);
    lane.turns.pop_front();
  } else {
    lane.turns.splice(lane.turns.end(), lane.turns, lane.turns.begin());
  }
  places_.erase(key);
  return key;
}

std::optional<std::string> FairQueue::Pop() {
  if (empty()) return std::nullopt;
  const bool listed_has_its_turn = news_in_a_row_ >= kNewsInARow && !listed_.turns.empty();
  if (news_.turns.empty() || listed_has_its_turn) {
    news_in_a_row_ = 0;
    return TakeFrom(listed_);
  }
  ++news_in_a_row_;
  return TakeFrom(news_);
}

}  // namespace tfjob::control
