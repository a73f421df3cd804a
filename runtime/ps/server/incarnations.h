// Tracks the latest process of each task, and numbers the processes of a task. Private to this
// package.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>

#include "runtime/base/status.h"
#include "runtime/ps/protocol/ledger.h"

namespace tfjob::ps {

// A process introduces itself with an instance (rpc::Identity::incarnation). Instances distinguish
// processes but do not order them, since clocks may differ. Incarnations order the processes of a
// task: ps 0 numbers them in the order in which they first connect, and continues from the highest
// incarnation in the ledgers of the state. A restarted ps 0 might not know all incarnations that
// its predecessor issued, but a process with such an incarnation is older than a process without
// one. The other servers learn incarnations from the processes. A value type.
class Incarnations {
 public:
  // Returns whether a later process of the task is known. If so, the instance must be refused.
  bool IsSuperseded(const protocol::Worker& task, int64_t instance) const;

  // ps 0 only. Called after a process has connected. The new process supersedes the registered
  // process of the task, unless Register finds that the new one is older. A process that is not
  // registered yet may turn out to be the later one, so it is not superseded. Returns the
  // incarnation of the process, or 0 if it has none.
  int64_t Connect(const protocol::Worker& task, int64_t instance);
  // ps 0 only. Returns the incarnation of a process that has connected. `own` is the incarnation
  // that ps 0, or its predecessor, has already issued to the process, or 0. `heard` is the highest
  // incarnation that LeastFor returns on other servers. They may know incarnations that are missing
  // from the ledgers from which ps 0 was restored. Returns FailedPrecondition if this server or
  // another one knows a later process. The process is then refused for good, and the process that
  // it had superseded is the latest again. Returns Aborted if another process of the task has
  // connected in the meantime and neither is known to be the later one. Returns InvalidArgument for
  // incarnations that are never issued.
  StatusOr<int64_t> Register(const protocol::Worker& task, int64_t instance, int64_t own,
                             int64_t heard);

  // Only on servers other than ps 0. Records the incarnation that the process announces. Returns
  // FailedPrecondition if a later process is known, Aborted if another process has announced the
  // same incarnation, and InvalidArgument for incarnations that are never issued.
  Status Announce(const protocol::Worker& task, int64_t instance, int64_t incarnation);

  // Records an incarnation that a ledger names.
  void Learn(const protocol::Worker& task, int64_t incarnation);
  // Returns the highest known incarnation of the task; 0 if none is known.
  int64_t Newest(const protocol::Worker& task) const;
  // Returns the lowest incarnation that the process may have: the highest known incarnation or, if
  // that belongs to another process, a higher one. A ps 0 that was restored from an earlier state
  // may issue the incarnation of a process again to the process's successor.
  int64_t LeastFor(const protocol::Worker& task, int64_t instance) const;

 private:
  struct Registered {
    int64_t instance = 0;
    int64_t incarnation = 0;
    bool issued_here = false;
  };
  struct Entry {
    std::optional<int64_t> instance;  // the process that connected last
    int64_t incarnation = 0;          // the incarnation of that process; 0: none
    bool issued_here = false;         // this server issued its first incarnation
    int64_t newest = 0;               // the highest known incarnation
    std::deque<int64_t> superseded;   // earlier instances, oldest first
    // Instances that have connected but not registered, in the order of their first connection.
    std::deque<int64_t> undecided;
    // The process that was registered before the current one; set while the current one is not
    // registered.
    std::optional<Registered> previous;
  };
  static void Supersede(Entry& entry, int64_t instance);
  // Called if the process that connected last turns out to be an older one. Refuses this process,
  // and makes the previous process the latest again.
  static void Demote(Entry& entry);
  // Decides which processes are older than the process that connected last. If that process
  // received a new incarnation (`issued`), it is later than all processes that connected before it.
  static void Settle(Entry& entry, bool issued);
  static Status IsOver(const protocol::Worker& task, int64_t own, int64_t newest);

  std::map<protocol::Worker, Entry> entries_;
};

}  // namespace tfjob::ps
