// Records which contributions were applied, so that a repeated contribution has no effect.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace tfjob::ps::protocol {

// A task that computes gradients. Workers are ordered by type, then index; contributions are summed
// in this order.
struct Worker {
  std::string type;
  int32_t index = 0;

  auto operator<=>(const Worker&) const = default;
};
std::string ToString(const Worker& worker);               // "worker 1"
std::string NamesOf(const std::vector<Worker>& workers);  // "worker 1, worker 2"

// Identifies a contribution, that is, one set of gradients from one worker. A worker's
// sequence increases with every exchange. A restarted worker gets a higher incarnation from ps 0,
// and restarts its sequence.
struct Name {
  Worker worker;
  int64_t incarnation = 0;
  uint64_t sequence = 0;

  auto operator<=>(const Name&) const = default;
};
std::string ToString(const Name& name);  // "worker 1 #57"

// Stores the name of each worker's last applied contribution. A value type.
class Ledger {
 public:
  // Returns whether `name` is the worker's last applied contribution or an older one. A worker
  // sends its contributions in order, so an older contribution was already applied or never will
  // be.
  bool Contains(const Name& name) const;
  void Record(const Name& name);

  std::vector<Name> entries() const;  // ordered by worker
  bool operator==(const Ledger&) const = default;

 private:
  std::map<Worker, Name> entries_;  // the entries of a checkpoint arrive in any order
};

}  // namespace tfjob::ps::protocol
