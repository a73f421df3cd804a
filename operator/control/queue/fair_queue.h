// Orders the keys that are waiting for a worker. Namespaces take turns, so that a namespace with
// thousands of jobs does not delay the few jobs of another. Within a namespace, keys are taken in
// the order in which they were added. Keys with news precede keys that were added only because a
// list contains them (thousands at startup). However, after kNewsInARow keys with news, one listed
// key is taken, so listed keys are not starved. Pure, not thread-safe.
#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <optional>
#include <string>
#include <unordered_map>

namespace tfjob::control {

enum class Urgency {
  kListed,  // a list contains the job, perhaps unchanged
  kNews,    // something has happened to the job, or it is due
};

class FairQueue {
 public:
  static constexpr int kNewsInARow = 4;

  // Adds a key of the form "namespace/name". If the key is already queued, only raises its urgency.
  void Push(const std::string& key, Urgency urgency);
  // Returns whether the keys of a namespace may be taken.
  using MayTake = std::function<bool(const std::string& name_space)>;
  // Removes and returns the next key; nullopt if there is none. Skips the namespaces for which
  // `may_take` returns false; they keep their turns.
  std::optional<std::string> Pop(const MayTake& may_take = nullptr);

  static std::string NamespaceOf(const std::string& key) { return key.substr(0, key.find('/')); }

  bool empty() const { return places_.empty(); }
  size_t size() const { return places_.size(); }

 private:
  using Keys = std::list<std::string>;
  using Turns = std::list<std::string>;  // namespaces with keys; the next one first

  // Contains the keys with the same urgency.
  struct Lane {
    Turns turns;
    std::unordered_map<std::string, Keys> keys;  // by namespace; never empty
  };
  struct Place {
    Urgency urgency;
    Keys::iterator at;
  };

  Lane& LaneOf(Urgency urgency) { return urgency == Urgency::kNews ? news_ : listed_; }
  static Keys::iterator AddTo(Lane& lane, const std::string& key);
  static void RemoveFrom(Lane& lane, Keys::iterator key);
  // Returns the first turn of a namespace whose keys may be taken; turns.end() if there is no such
  // turn.
  static Turns::iterator FindTurn(Lane& lane, const MayTake& may_take);
  std::string TakeFrom(Lane& lane, Turns::iterator turn);

  Lane news_;
  Lane listed_;
  std::unordered_map<std::string, Place> places_;  // the places of all queued keys
  int news_in_a_row_ = 0;
};

}  // namespace tfjob::control
