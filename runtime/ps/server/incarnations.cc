#include "runtime/ps/server/incarnations.h"

#include <algorithm>
#include <tuple>

namespace tfjob::ps {
namespace {

// Far more than processes can start, and far from overflow.
constexpr int64_t kGreatest = int64_t{1} << 60;
// Older processes than these have long been told to exit.
constexpr size_t kMostSuperseded = 16;

Status CheckNumber(const char* what, int64_t number) {
  if (number >= 0 && number <= kGreatest) return OkStatus();
  return InvalidArgument(what, ": expected 0 to ", kGreatest, ", got ", number);
}

}  // namespace

bool Incarnations::IsSuperseded(const protocol::Worker& task, int64_t instance) const {
  const auto found = entries_.find(task);
  return found != entries_.end() &&
         std::ranges::find(found->second.superseded, instance) != found->second.superseded.end();
}

void Incarnations::Supersede(Entry& entry, int64_t instance) {
  entry.superseded.push_back(instance);
  if (entry.superseded.size() > kMostSuperseded) entry.superseded.pop_front();
}

void Incarnations::Demote(Entry& entry) {
  const int64_t older = *entry.instance;
  entry.instance.reset();
  entry.incarnation = 0;
  if (entry.previous) {
    std::tie(entry.instance, entry.incarnation) = *std::exchange(entry.previous, std::nullopt);
    std::erase(entry.superseded, *entry.instance);
  }
  Supersede(entry, older);
}

Status Incarnations::IsOver(const protocol::Worker& task, int64_t own, int64_t newest) {
  return FailedPrecondition("refused: a later start of ", protocol::ToString(task), " is known (",
                            newest, " > ", own, "): stop the older process");
}

int64_t Incarnations::Connect(const protocol::Worker& task, int64_t instance) {
  Entry& entry = entries_[task];
  if (entry.instance != instance) {
    if (entry.instance) {
      Supersede(entry, *entry.instance);
      // Only a process that has registered can turn out to be the later one, so no other
      // replaces it.
      if (!entry.previous || entry.incarnation != 0) {
        entry.previous = {*entry.instance, entry.incarnation};
      }
    }
    entry.instance = instance;
    entry.incarnation = 0;
  }
  return entry.incarnation;
}

StatusOr<int64_t> Incarnations::Register(const protocol::Worker& task, int64_t instance,
                                         int64_t own, int64_t heard) {
  RETURN_IF_ERROR(CheckNumber("incarnation", own));
  RETURN_IF_ERROR(CheckNumber("greatest known incarnation", heard));
  Entry& entry = entries_[task];
  if (entry.instance != instance) return IsOver(task, own, entry.newest);
  // The process may not have received the answer to an earlier request.
  if (own == 0) own = entry.incarnation;
  // If this server gave it the number, a greater one that others know was its predecessor's, which
  // this server forgot when it was restored. Otherwise it is that of a successor.
  const bool numbered_here = entry.incarnation != 0 && own == entry.incarnation;
  const int64_t later = numbered_here ? entry.newest : std::max(entry.newest, heard);
  if (own != 0 && own < later) {
    Demote(entry);
    return IsOver(task, own, later);
  }
  if (own == 0 || own < heard) own = std::max(entry.newest, heard) + 1;
  entry.incarnation = entry.newest = own;
  entry.previous.reset();
  return own;
}

Status Incarnations::Announce(const protocol::Worker& task, int64_t instance, int64_t incarnation) {
  RETURN_IF_ERROR(CheckNumber("incarnation", incarnation));
  Entry& entry = entries_[task];
  if (incarnation < entry.newest || incarnation == 0) {
    if (entry.instance != instance) Supersede(entry, instance);
    return IsOver(task, incarnation, entry.newest);
  }
  if (entry.instance && entry.instance != instance) Supersede(entry, *entry.instance);
  entry.instance = instance;
  entry.incarnation = entry.newest = incarnation;
  return OkStatus();
}

void Incarnations::Learn(const protocol::Worker& task, int64_t incarnation) {
  int64_t& newest = entries_[task].newest;
  newest = std::max(newest, incarnation);
}

int64_t Incarnations::Newest(const protocol::Worker& task) const {
  const auto found = entries_.find(task);
  return found == entries_.end() ? 0 : found->second.newest;
}

}  // namespace tfjob::ps
