// Describes which ranks of a group run on the same machine, and can therefore share memory. A
// machine here is a set of ranks that have proven to each other that they share memory; two pods of
// one node may count as two machines.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"

namespace tfjob::collectives {

class Hosts {
 public:
  // Describes a group about whose machines nothing is known. Its plans use only sockets.
  Hosts() = default;
  // `machines` contains one number per rank; ranks with the same number run on the same machine.
  // The machines are renumbered from 0, in the order of their lowest ranks.
  explicit Hosts(const std::vector<int>& machines);

  bool known() const { return !machine_of_.empty(); }
  int ranks() const { return static_cast<int>(machine_of_.size()); }
  int machines() const { return static_cast<int>(ranks_on_.size()); }
  int MachineOf(int rank) const { return machine_of_[static_cast<size_t>(rank)]; }
  // Returns the ranks that run on a machine, in ascending order.
  const std::vector<int>& RanksOn(int machine) const {
    return ranks_on_[static_cast<size_t>(machine)];
  }
  // Returns the position of the rank in RanksOn(MachineOf(rank)).
  int PlaceOf(int rank) const;
  // Returns the largest number of ranks on one machine, or 0 if no machines are known.
  int MostRanksOnOne() const;
  // Returns whether there are several machines, at least one of which runs several ranks.
  bool HasTwoLevels() const { return machines() > 1 && MostRanksOnOne() > 1; }
  bool operator==(const Hosts&) const = default;

 private:
  std::vector<int> machine_of_;             // by rank
  std::vector<std::vector<int>> ranks_on_;  // by machine
};

// A node of the tree over all ranks (reduction.h): the ranks [begin, end).
struct Subtree {
  int begin = 0;
  int end = 0;
  int machine = 0;
  bool operator==(const Subtree&) const = default;
};
// Returns the largest subtrees whose ranks all run on one machine, in rank order. Together, they
// contain every rank once. A machine can sum the values of such a subtree without other machines,
// and has to send only the sum.
std::vector<Subtree> MaximalSubtrees(const Hosts& hosts);

// Parses the machine names of all ranks, in rank order. `name*n` stands for n ranks on the machine
// `name`: in "a*4,b*2,a", the ranks 0 to 3 and 6 run on machine a, and the ranks 4 and 5 on machine
// b. Returns InvalidArgument, with a message that names the part, if the text is malformed or does
// not describe exactly `ranks` ranks.
StatusOr<Hosts> ParseHosts(std::string_view text, int ranks);

// Returns, for example, "2 machines: ranks 0-3 6, ranks 4-5".
std::string ToString(const Hosts& hosts);

}  // namespace tfjob::collectives
