#include "runtime/collectives/membership/address_book.h"

#include <utility>

namespace tfjob::collectives {

AddressBook::AddressBook(const std::vector<Member>& tasks) {
  for (const Member& task : tasks) addresses_[task.task] = task.address;
}

std::vector<std::string> AddressBook::Note(const std::vector<Member>& members) {
  std::vector<std::string> warnings;
  for (const Member& member : members) {
    const auto known = addresses_.find(member.task);
    if (known == addresses_.end() || member.address.empty() || known->second == member.address) {
      continue;
    }
    const std::string before = std::exchange(known->second, member.address);
    if (before.empty()) continue;
    warnings.push_back(StrCat(member.task, " has joined with the address ", member.address,
                              ", which replaces the address ", before, " known so far"));
  }
  return warnings;
}

std::string AddressBook::Of(const std::string& task) const {
  const auto found = addresses_.find(task);
  return found == addresses_.end() ? "" : found->second;
}

}  // namespace tfjob::collectives
