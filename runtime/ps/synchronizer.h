// Carries out the synchronous protocol on one server. Inside the room only.
#pragma once

#include <memory>

#include "runtime/ps/protocol/ledger.h"
#include "runtime/rpc/frame.h"

namespace tfjob::ps {

class Store;

// One contribution's updates for this server's shards.
class Staging {
 public:
  // Reads the shard's update; nothing for it when `length` is 0. One thread.
  void Take(rpc::IncomingFrame& frame, int shard, size_t length);
};

class Synchronizer {
 public:
  // Where to put the contribution; null when its fate is known already (its bytes are then passed
  // over, and Staged answers).
  std::shared_ptr<Staging> Stage(const protocol::Name& name, int64_t step,
                                 const std::shared_ptr<Store>& store);
  // The contribution is whole.
  void Staged(const protocol::Name& name, std::shared_ptr<Staging> staging);
  // The task wants the current values, and takes part from now on.
  void Pull(const protocol::Name& name, int64_t epoch);
};

}  // namespace tfjob::ps
