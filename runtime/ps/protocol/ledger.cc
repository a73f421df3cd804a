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
  const auto found = entries_.find(name.worker);
  return found != entries_.end() && name <= found->second;
}

void Ledger::Record(const Name& name) {
  const auto [entry, added] = entries_.try_emplace(name.worker, name);
  if (!added) entry->second = std::max(entry->second, name);
}

std::vector<Name> Ledger::entries() const {
  std::vector<Name> entries;
  entries.reserve(entries_.size());
  for (const auto& [worker, name] : entries_) entries.push_back(name);
  return entries;
}

}  // namespace tfjob::ps::protocol
