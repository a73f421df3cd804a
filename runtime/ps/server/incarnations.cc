#include "runtime/ps/server/incarnations.h"

#include <algorithm>

namespace tfjob::ps {
namespace {

// The highest incarnation: far more than the number of processes that can start, and far from
// overflow.
constexpr int64_t kGreatest = int64_t{1} << 60;
// Per task, at most this many superseded processes and this many unregistered processes are
// remembered. Older processes were refused long ago.
constexpr size_t kMostProcesses = 16;

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
  if (entry.superseded.size() > kMostProcesses) entry.superseded.pop_front();
}

void Incarnations::Demote(Entry& entry) {
  const int64_t older = *entry.instance;
  entry.instance.reset();
  entry.incarnation = 0;
  std::erase(entry.undecided, older);
  if (entry.previous) {
    entry.instance = entry.previous->instance;
    entry.incarnation = entry.previous->incarnation;
    entry.issued_here = entry.previous->issued_here;
    entry.previous.reset();
    std::erase(entry.superseded, *entry.instance);
  }
  Supersede(entry, older);
}

void Incarnations::Settle(Entry& entry, bool issued) {
  const auto own = std::ranges::find(entry.undecided, *entry.instance);
  entry.previous.reset();
  if (own == entry.undecided.end()) return;
  // The processes that connected before this one got their incarnations from a predecessor of this
  // server, or have none.
  const auto first = issued ? entry.undecided.begin() : own;
  for (auto other = first; other != own; ++other) Supersede(entry, *other);
  entry.undecided.erase(first, own + 1);
}

Status Incarnations::IsOver(const protocol::Worker& task, int64_t own, int64_t newest) {
  // A later process may have a lower incarnation, if a restarted ps 0 issued it.
  const std::string numbers = newest > own ? StrCat(" (", newest, " > ", own, ")") : "";
  return FailedPrecondition("refused: a later start of ", protocol::ToString(task), " is known",
                            numbers, ": stop the older process");
}

int64_t Incarnations::Connect(const protocol::Worker& task, int64_t instance) {
  Entry& entry = entries_[task];
  if (entry.instance == instance) return entry.incarnation;
  // Supersede only a registered process, because an unregistered one may still turn out to be the
  // later process.
  if (entry.instance && entry.incarnation != 0) {
    Supersede(entry, *entry.instance);
    entry.previous = {*entry.instance, entry.incarnation, entry.issued_here};
  }
  entry.instance = instance;
  entry.incarnation = 0;
  entry.issued_here = false;
  if (std::ranges::find(entry.undecided, instance) == entry.undecided.end()) {
    entry.undecided.push_back(instance);
    if (entry.undecided.size() > kMostProcesses) entry.undecided.pop_front();
  }
  return entry.incarnation;
}

StatusOr<int64_t> Incarnations::Register(const protocol::Worker& task, int64_t instance,
                                         int64_t own, int64_t heard) {
  RETURN_IF_ERROR(CheckNumber("incarnation", own));
  RETURN_IF_ERROR(CheckNumber("greatest known incarnation", heard));
  Entry& entry = entries_[task];
  if (entry.instance != instance) {
    if (IsSuperseded(task, instance)) return IsOver(task, own, entry.newest);
    return Aborted("another process of ", protocol::ToString(task), " has connected");
  }
  // If the process did not receive the answer to an earlier request, it does not know its
  // incarnation.
  if (own == 0) own = entry.incarnation;
  // Other servers may have reported a higher incarnation. If this server issued the process's
  // incarnation, the higher one belonged to a predecessor of the process, and this server forgot it
  // when it was restored. Otherwise, the higher one belongs to a successor of the process.
  const bool numbered_here = entry.incarnation != 0 && own == entry.incarnation;
  const int64_t later = numbered_here ? entry.newest : std::max(entry.newest, heard);
  const bool from_predecessor = own != 0 && entry.incarnation == 0;
  const bool older = entry.previous && entry.previous->issued_here;
  if (own != 0 && (own < later || (from_predecessor && older))) {
    Demote(entry);
    return IsOver(task, own, later);
  }
  const bool from_none = own == 0;
  const bool issues = from_none || own < heard;
  if (issues) own = std::max(entry.newest, heard) + 1;
  entry.issued_here = entry.issued_here || from_none;
  entry.incarnation = entry.newest = own;
  Settle(entry, issues);
  return own;
}

Status Incarnations::Announce(const protocol::Worker& task, int64_t instance, int64_t incarnation) {
  RETURN_IF_ERROR(CheckNumber("incarnation", incarnation));
  Entry& entry = entries_[task];
  if (incarnation < entry.newest || incarnation == 0) {
    if (entry.instance != instance) Supersede(entry, instance);
    return IsOver(task, incarnation, entry.newest);
  }
  // Another process has this incarnation, and neither process is known to be the later one. The
  // process that announces the incarnation last requests a higher one from ps 0 (LeastFor).
  if (incarnation < LeastFor(task, instance)) {
    return Aborted("another process of ", protocol::ToString(task), " has incarnation ",
                   incarnation);
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

int64_t Incarnations::LeastFor(const protocol::Worker& task, int64_t instance) const {
  const auto found = entries_.find(task);
  if (found == entries_.end()) return 0;
  const Entry& entry = found->second;
  const bool taken = entry.instance && *entry.instance != instance && entry.incarnation != 0 &&
                     entry.incarnation == entry.newest;
  return taken ? entry.newest + 1 : entry.newest;
}

}  // namespace tfjob::ps
