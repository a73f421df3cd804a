// Whose contributions were applied: what makes a repeated one harmless.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace tfjob::ps::protocol {

// A task that computes gradients. Ordered by type, then index: the order of summation.
struct Worker {
  std::string type;
  int32_t index = 0;

  auto operator<=>(const Worker&) const = default;
};
std::string ToString(const Worker& worker);  // "worker 1"

// One set of gradients of one worker. A worker's sequence grows by one a set; a restarted worker
// has a greater incarnation and starts anew.
struct Name {
  Worker worker;
  int64_t incarnation = 0;
  uint64_t sequence = 0;

  auto operator<=>(const Name&) const = default;
};
std::string ToString(const Name& name);  // "worker 1 #57"

// The last contribution of each worker that was applied. A value.
class Ledger {
 public:
  // A worker names its sets in order, so an older name than the last was applied, or will never be.
  bool Contains(const Name& name) const;
  void Record(const Name& name);

  const std::vector<Name>& entries() const { return entries_; }  // by worker
  bool operator==(const Ledger&) const = default;

 private:
  std::vector<Name> entries_;
};

}  // namespace tfjob::ps::protocol
