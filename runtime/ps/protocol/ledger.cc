#include "runtime/ps/protocol/ledger.h"

#include <algorithm>

namespace tfjob::ps::protocol {

std::string ToString(const Worker& worker) {
  return worker.type + " " + std::to_string(worker.index);
}

std::string NamesOf(const std::vector<Worker>& workers) {
  std::string names;
  for (const Worker& worker : workers) {
    if (!names.empty()) names += ", ";
    names += ToString(worker);
  }
  return names;
}

std::string ToString(const Name& name) {
  return ToString(name.worker) + " #" + std::to_string(name.sequence);
}

bool Ledger::Contains(const Name& name) const {
  auto found = std::ranges::lower_bound(entries_, name.worker, {}, &Name::worker);
  return found != entries_.end() && found->worker == name.worker && name <= *found;
}

void Ledger::Record(const Name& name) {
  auto found = std::ranges::lower_bound(entries_, name.worker, {}, &Name::worker);
  if (found == entries_.end() || found->worker != name.worker) {
    entries_.insert(found, name);
  } else {
    *found = std::max(*found, name);
  }
}

}  // namespace tfjob::ps::protocol
