// Remembers the addresses at which the tasks of a group can be reached. TF_CONFIG lists some
// addresses. In an elastic group, the members of each generation also publish their own addresses,
// which are more recent than those of an old TF_CONFIG.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/collectives/membership/group.h"

namespace tfjob::collectives {

// Not thread-safe.
class AddressBook {
 public:
  // `tasks` contains all tasks that may belong to the group. Unknown addresses are "".
  explicit AddressBook(const std::vector<Member>& tasks);

  // Records the addresses of a generation's members, which come from a peer. Ignores tasks that are
  // not in the book, and empty addresses. Returns a warning for each task that was known by another
  // address.
  std::vector<std::string> Note(const std::vector<Member>& members);
  // Returns the address of a task in the book; "" if it is unknown.
  std::string Of(const std::string& task) const;

 private:
  std::map<std::string, std::string> addresses_;  // by the task's name
};

}  // namespace tfjob::collectives
