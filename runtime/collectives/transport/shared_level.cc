#include "runtime/collectives/transport/shared_level.h"

#include <sys/random.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "runtime/collectives/shared/shared_process_space.h"
#include "runtime/collectives/shared/shared_sockets.h"
#include "runtime/collectives/transport/machine_sockets.h"

namespace tfjob::collectives {
namespace {

class LevelSetup {
 public:
  LevelSetup(RankRounds& rounds, const Hosts& hosts, std::vector<wire::UniqueFd> sockets,
             const Costs& costs, Duration patience)
      : rounds_(rounds),
        patience_(patience),
        window_bytes_(2 * static_cast<size_t>(costs.chunk_bytes)) {
    level_.hosts = hosts;
    const std::vector<int>& neighbours = hosts.RanksOn(hosts.MachineOf(rounds.rank()));
    if (neighbours.size() == 1) return;
    std::vector<wire::UniqueFd> local;
    for (const int rank : neighbours)
      local.push_back(std::move(sockets[static_cast<size_t>(rank)]));
    level_.space = std::make_unique<ProcessSpace>(
        std::make_unique<PeerSockets>(hosts.PlaceOf(rounds.rank()), std::move(local)));
  }

  StatusOr<LevelAttempt> Run() {
    ASSIGN_OR_RETURN(auto verdict, rounds_.Agree(Offer(), patience_));
    if (!verdict.status.ok()) return LevelAttempt{.failed = verdict.status, .level = {}};
    const Status taken = Take();
    ASSIGN_OR_RETURN(const std::vector<MachineNumber> numbers,
                     rounds_.Exchange(std::vector(ranks(), number_), patience_));
    ASSIGN_OR_RETURN(verdict, rounds_.Agree(taken.ok() ? Look(numbers) : taken, patience_));
    if (!verdict.status.ok()) return LevelAttempt{.failed = verdict.status, .level = {}};
    // No rank writes to the memory before all ranks have looked.
    return LevelAttempt{.failed = OkStatus(), .level = std::move(level_)};
  }

 private:
  size_t ranks() const { return static_cast<size_t>(rounds_.ranks()); }

  Status Offer() { return level_.space ? level_.space->Offer(window_bytes_) : OkStatus(); }

  Status Take() {
    if (!level_.space) return OkStatus();
    ASSIGN_OR_RETURN(level_.window, level_.space->Take(window_bytes_));
    if (getentropy(number_.data(), number_.size()) != 0) return ErrnoStatus(errno, "getentropy");
    std::memcpy(level_.window->bytes().data(), number_.data(), number_.size());
    return OkStatus();
  }

  // Looks for the numbers of all neighbours in the memory.
  Status Look(const std::vector<MachineNumber>& numbers) {
    if (!level_.space) return OkStatus();
    const Place place = level_.space->PlaceOf(level_.window->bytes());
    const Hosts& hosts = level_.hosts;
    for (const int rank : hosts.RanksOn(hosts.MachineOf(rounds_.rank()))) {
      const MachineNumber& number = numbers[static_cast<size_t>(rank)];
      const std::byte* const found = level_.space->Find(hosts.PlaceOf(rank), place, number.size());
      if (found != nullptr && std::memcmp(found, number.data(), number.size()) == 0) continue;
      return FailedPrecondition("the number that rank ", rank,
                                " sent is not in the shared memory, so it sees other memory");
    }
    return OkStatus();
  }

  RankRounds& rounds_;
  const Duration patience_;
  const size_t window_bytes_;
  SharedLevel level_;
  MachineNumber number_{};
};

}  // namespace

StatusOr<LevelAttempt> MakeSharedLevel(RankRounds& rounds, const Hosts& hosts,
                                       std::vector<wire::UniqueFd> sockets, const Costs& costs,
                                       Duration patience) {
  return LevelSetup(rounds, hosts, std::move(sockets), costs, patience).Run();
}

}  // namespace tfjob::collectives
