// Reads the tables of a copy of the state from the servers, which keep them while training
// continues. Private to this package.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/base/mutex.h"
#include "runtime/ps/client/link.h"
#include "runtime/state/streamed_value.h"

namespace tfjob::ps {

// Provides the copies of the state with access to the client's links. The client closes the gate
// before it destroys the links, so a copy may outlive the client but can no longer be read.
// Thread-safe.
class LinkGate {
 public:
  // The context and its links must stay in place until Close has returned.
  explicit LinkGate(LinkContext& context) : context_(context) {}

  // Calls act(context) and returns its status, or returns Unavailable if the gate is closed.
  template <typename Act>
  Status With(const Act& act) {
    {
      MutexLock lock(mutex_);
      if (closed_) return Unavailable("the copy of the state is gone: its task has ended");
      ++inside_;
    }
    Status status = act(context_);
    MutexLock lock(mutex_);
    if (--inside_ == 0) left_.NotifyAll();
    return status;
  }
  // Interrupts the threads that wait on the links, and returns once no thread uses the links any
  // longer.
  void Close();

 private:
  LinkContext& context_;
  Mutex mutex_;
  CondVar left_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  int inside_ ABSL_GUARDED_BY(mutex_) = 0;
};

// The tables of one copy of the state. The servers keep the tables until this object is destroyed.
// Thread-safe, except for SetNumber.
class CopiedTables {
 public:
  CopiedTables(std::shared_ptr<LinkGate> gate, size_t servers)
      : gate_(std::move(gate)), numbers_(servers) {}
  ~CopiedTables();
  CopiedTables(const CopiedTables&) = delete;
  CopiedTables& operator=(const CopiedTables&) = delete;

  // Sets the identifier of the copy on a server (Link::BeginCopy).
  void SetNumber(size_t server, uint64_t number) { numbers_[server] = number; }
  // Fills `to` with bytes of a table's value (slot 0) or of one of its slots, starting at byte
  // `offset` of the whole table.
  Status Read(int variable, size_t slot, int64_t offset, std::span<std::byte> to) const;
  // Returns whether a read has failed because the copy no longer exists.
  bool lost() const { return lost_; }

 private:
  Status ReadPieces(int variable, size_t slot, int64_t offset, std::span<std::byte> to) const;

  const std::shared_ptr<LinkGate> gate_;
  std::vector<uint64_t> numbers_;  // indexed by server; 0 if the server keeps no copy
  mutable std::atomic<bool> lost_ = false;
};

// Returns objects that read the value and the slots of a table from the servers; the value comes
// first.
std::vector<std::shared_ptr<const state::StreamedValue>> ValuesOf(
    const std::shared_ptr<const CopiedTables>& tables, int variable, size_t slots);

}  // namespace tfjob::ps
