#include "runtime/collectives/plan/hosts.h"

#include <algorithm>
#include <charconv>
#include <map>

#include "runtime/collectives/reduction.h"

namespace tfjob::collectives {
namespace {

// Appends the maximal subtrees of the node [begin, end).
void AddSubtrees(const Hosts& hosts, int begin, int end, std::vector<Subtree>& found) {
  if (end - begin == 1) {
    found.push_back({begin, end, hosts.MachineOf(begin)});
    return;
  }
  const size_t before = found.size();
  const int middle = TreeMiddle(begin, end);
  AddSubtrees(hosts, begin, middle, found);
  AddSubtrees(hosts, middle, end, found);
  const bool whole_halves = found.size() == before + 2;
  if (!whole_halves || found[before].machine != found[before + 1].machine) return;
  found.pop_back();
  found.back().end = end;
}

Status Malformed(std::string_view part) {
  return InvalidArgument("\"", part,
                         "\": expected the name of a machine, or name*n for n ranks on this "
                         "machine, separated by commas, as in a*4,b*4");
}

// Splits "a*4" into its name and its number of ranks.
StatusOr<std::pair<std::string, int>> ParsePart(std::string_view part) {
  const size_t star = part.find('*');
  const std::string_view name = part.substr(0, star);
  if (name.empty()) return Malformed(part);
  int count = 1;
  if (star != std::string_view::npos) {
    const std::string_view digits = part.substr(star + 1);
    const auto [end, error] = std::from_chars(digits.begin(), digits.end(), count);
    if (error != std::errc() || end != digits.end() || count < 1) return Malformed(part);
  }
  return std::pair(std::string(name), count);
}

std::string RanksText(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank" : "ranks";
  for (size_t i = 0; i < ranks.size();) {
    size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    text += StrCat(" ", ranks[i]);
    if (last > i) text += StrCat("-", ranks[last]);
    i = last + 1;
  }
  return text;
}

}  // namespace

Hosts::Hosts(const std::vector<int>& machines) {
  std::map<int, int> numbers;
  for (const int machine : machines) {
    const auto next = static_cast<int>(numbers.size());
    const auto [entry, fresh] = numbers.try_emplace(machine, next);
    if (fresh) ranks_on_.emplace_back();
    ranks_on_[static_cast<size_t>(entry->second)].push_back(ranks());
    machine_of_.push_back(entry->second);
  }
}

int Hosts::PlaceOf(int rank) const {
  const std::vector<int>& neighbours = RanksOn(MachineOf(rank));
  return static_cast<int>(std::ranges::lower_bound(neighbours, rank) - neighbours.begin());
}

int Hosts::MostRanksOnOne() const {
  size_t most = 0;
  for (const std::vector<int>& ranks : ranks_on_) most = std::max(most, ranks.size());
  return static_cast<int>(most);
}

std::vector<Subtree> MaximalSubtrees(const Hosts& hosts) {
  std::vector<Subtree> found;
  if (hosts.ranks() > 0) AddSubtrees(hosts, 0, hosts.ranks(), found);
  return found;
}

StatusOr<Hosts> ParseHosts(std::string_view text, int ranks) {
  std::map<std::string, int> numbers;
  std::vector<int> machines;
  while (true) {
    const size_t comma = text.find(',');
    ASSIGN_OR_RETURN(const auto part, ParsePart(text.substr(0, comma)));
    const auto next = static_cast<int>(numbers.size());
    const int machine = numbers.try_emplace(part.first, next).first->second;
    // Append no more than one rank too many, because the number may be huge.
    const int left = ranks + 1 - static_cast<int>(machines.size());
    machines.insert(machines.end(), static_cast<size_t>(std::clamp(part.second, 0, left)), machine);
    if (static_cast<int>(machines.size()) > ranks) {
      return InvalidArgument("expected the machines of ", ranks, " ranks, got more");
    }
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
  }
  if (static_cast<int>(machines.size()) < ranks) {
    return InvalidArgument("expected the machines of ", ranks, " ranks, got ", machines.size());
  }
  return Hosts(machines);
}

std::string ToString(const Hosts& hosts) {
  std::string text = StrCat(hosts.machines(), hosts.machines() == 1 ? " machine: " : " machines: ");
  for (int machine = 0; machine < hosts.machines(); ++machine) {
    text += StrCat(machine == 0 ? "" : ", ", RanksText(hosts.RanksOn(machine)));
  }
  return text;
}

}  // namespace tfjob::collectives
