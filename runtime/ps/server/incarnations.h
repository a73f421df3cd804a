// Knows which process of each task is the latest, and numbers the processes. Private to this
// package.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>

#include "runtime/base/status.h"
#include "runtime/ps/protocol/ledger.h"

namespace tfjob::ps {

// A process introduces itself with an instance (rpc::Identity::incarnation), which tells processes
// apart but does not order them, since clocks may differ. Its incarnation orders them: ps 0 counts
// the processes of each task in the order in which they first connect, and continues from the
// greatest incarnation in the ledgers of the state. A ps 0 that was restarted may not know all
// numbers that its predecessor has issued, but a process with such a number is older than one that
// had none. The other servers learn incarnations from the processes. A value type.
class Incarnations {
 public:
  // Returns whether a later process of the task is known. The instance must then be refused.
  bool IsSuperseded(const protocol::Worker& task, int64_t instance) const;

  // ps 0 only. The process has connected. This supersedes the process of the task that is
  // registered, unless Register finds that the new one is older. A process that is not registered
  // yet may turn out to be the later one, so it is not superseded. Returns the incarnation of the
  // process, or 0 if it has none yet.
  int64_t Connect(const protocol::Worker& task, int64_t instance);
  // ps 0 only. Returns the incarnation of a process that has connected. `own` is the incarnation
  // that ps 0, or its predecessor, has already given it, or 0. `heard` is the greatest that other
  // servers know of this task; they may know more than the ledgers from which ps 0 was restored.
  // Returns FailedPrecondition if a later process is known, also if only other servers know it. The
  // process is then refused for good, and the one that it had superseded is the latest again.
  // Returns Aborted if another process of the task has connected meanwhile and neither is known to
  // be the later one, and InvalidArgument for numbers that are never issued.
  StatusOr<int64_t> Register(const protocol::Worker& task, int64_t instance, int64_t own,
                             int64_t heard);

  // Servers other than ps 0. The process says which incarnation it has. Returns FailedPrecondition
  // if a later one is known, and InvalidArgument for numbers that are never issued.
  Status Announce(const protocol::Worker& task, int64_t instance, int64_t incarnation);

  // A ledger names this incarnation.
  void Learn(const protocol::Worker& task, int64_t incarnation);
  // Returns the greatest known incarnation of the task; 0 if none is known.
  int64_t Newest(const protocol::Worker& task) const;

 private:
  struct Registered {
    int64_t instance = 0;
    int64_t incarnation = 0;
    bool issued_here = false;
  };
  struct Entry {
    std::optional<int64_t> instance;  // of the process that connected last
    int64_t incarnation = 0;          // of this process; 0: it has none yet
    bool issued_here = false;         // it had none before it registered with this server
    int64_t newest = 0;               // greatest known
    std::deque<int64_t> superseded;   // earlier instances, the latest last
    // Instances that have connected but not registered, in the order of their first connection.
    std::deque<int64_t> undecided;
    // The process that was registered before this one, until this one is registered.
    std::optional<Registered> previous;
  };
  static void Supersede(Entry& entry, int64_t instance);
  // The process that connected last is an older one: refuses it, and returns to the previous one.
  static void Demote(Entry& entry);
  // Settles the order of the process that connected last. If it was `issued` a new number, it is
  // later than all that connected before it.
  static void Settle(Entry& entry, bool issued);
  static Status IsOver(const protocol::Worker& task, int64_t own, int64_t newest);

  std::map<protocol::Worker, Entry> entries_;
};

}  // namespace tfjob::ps
