// Implements a map of bounded size that evicts the least recently used entry. Not thread-safe.
#pragma once

#include <list>
#include <string>
#include <unordered_map>
#include <utility>

namespace tfjob::events {

template <typename Value>
class Lru {
 public:
  explicit Lru(size_t capacity) : capacity_(capacity) {}

  // Returns the value of the key and marks it as the most recently used. If there is no value,
  // creates one. The reference is valid until the next call.
  Value& Use(const std::string& key) {
    const auto found = index_.find(key);
    if (found != index_.end()) {
      order_.splice(order_.begin(), order_, found->second);
      return order_.front().second;
    }
    if (index_.size() >= capacity_ && !order_.empty()) {
      index_.erase(order_.back().first);
      order_.pop_back();
    }
    order_.emplace_front(key, Value());
    index_[key] = order_.begin();
    return order_.front().second;
  }

  size_t size() const { return index_.size(); }

 private:
  using Order = std::list<std::pair<std::string, Value>>;

  const size_t capacity_;
  Order order_;  // most recently used first
  std::unordered_map<std::string, typename Order::iterator> index_;
};

}  // namespace tfjob::events
