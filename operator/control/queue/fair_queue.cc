#include "operator/control/queue/fair_queue.h"

#include <algorithm>
#include <utility>

namespace tfjob::control {

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

FairQueue::Turns::iterator FairQueue::FindTurn(Lane& lane, const MayTake& may_take) {
  return std::find_if(lane.turns.begin(), lane.turns.end(), [&](const std::string& name_space) {
    return may_take == nullptr || may_take(name_space);
  });
}

std::string FairQueue::TakeFrom(Lane& lane, Turns::iterator turn) {
  const auto keys = lane.keys.find(*turn);
  std::string key = std::move(keys->second.front());
  keys->second.pop_front();
  if (keys->second.empty()) {
    lane.keys.erase(keys);
    lane.turns.erase(turn);
  } else {
    lane.turns.splice(lane.turns.end(), lane.turns, turn);
  }
  places_.erase(key);
  return key;
}

std::optional<std::string> FairQueue::Pop(const MayTake& may_take) {
  const auto news = FindTurn(news_, may_take);
  const auto listed = FindTurn(listed_, may_take);
  const bool has_news = news != news_.turns.end(), has_listed = listed != listed_.turns.end();
  if (!has_news && !has_listed) return std::nullopt;
  const bool listed_has_its_turn = news_in_a_row_ >= kNewsInARow && has_listed;
  if (!has_news || listed_has_its_turn) {
    news_in_a_row_ = 0;
    return TakeFrom(listed_, listed);
  }
  ++news_in_a_row_;
  return TakeFrom(news_, news);
}

}  // namespace tfjob::control
