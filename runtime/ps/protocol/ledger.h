// Records which contributions were applied, so that a repeated one has no effect.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tfjob::ps::protocol {

// A task that computes gradients. Ordered by type, then index; contributions are summed
// in this order.
struct Worker {
  std::string type;
  int32_t index = 0;

  auto operator<=>(const Worker&) const = default;
};
std::string ToString(const Worker& worker);  // "worker 1"

// Names one set of gradients of one worker. A worker's sequence increases by one per set. A
// restarted worker has a greater incarnation and starts its sequence again.
struct Name {
  Worker worker;
  int64_t incarnation = 0;
  uint64_t sequence = 0;

  auto operator<=>(const Name&) const = default;
};
std::string ToString(const Name& name);  // "worker 1 #57"

// Holds the last applied contribution of each worker. A value type.
class Ledger {
 public:
  // Returns whether `name` is not newer than the worker's last applied set. A worker names its sets
  // in order, so an older set was applied or never will be.
  bool Contains(const Name& name) const;
  void Record(const Name& name);

  const std::vector<Name>& entries() const { return entries_; }  // ordered by worker
  bool operator==(const Ledger&) const = default;

 private:
  std::vector<Name> entries_;
};

}  // namespace tfjob::ps::protocol
