// Preserves the state of a server's tables as of one moment, while training continues and the chief
// reads the state piece by piece. Only shards that change during this time need memory: such a
// shard is copied before its first change, and all copies of the tables that need its old state
// share this memory. Private to this package.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>

#include "runtime/ps/server/store.h"

namespace tfjob::ps {

// Thread-safe.
class TableCopy {
 public:
  // Keeps the tables' shards, with their slots, and appends the shards' ledgers as text. Each shard
  // is kept as of one moment. In synchronous mode, a hold makes this moment the same for all
  // shards.
  TableCopy(std::shared_ptr<Store> store, std::string& ledger);
  ~TableCopy();
  TableCopy(const TableCopy&) = delete;
  TableCopy& operator=(const TableCopy&) = delete;

  const Store* store() const { return store_.get(); }
  // Returns InvalidArgument unless the shard belongs to a table and its value (slot 0) or slot
  // contains these bytes.
  Status Check(uint32_t shard, uint32_t slot, uint64_t offset, uint64_t length) const;
  // Copies bytes that Check accepts. Returns ResourceExhausted if the shard has changed and there
  // was no memory to keep it.
  Status Read(uint32_t shard, uint32_t slot, uint64_t offset, std::span<std::byte> to) const;

 private:
  const std::shared_ptr<Store> store_;
  std::map<uint32_t, KeptShard> kept_;  // indexed by shard; not changed after construction
};

}  // namespace tfjob::ps
