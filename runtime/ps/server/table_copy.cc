#include "runtime/ps/server/table_copy.h"

#include <utility>

namespace tfjob::ps {

TableCopy::TableCopy(std::shared_ptr<Store> store, std::string& ledger) : store_(std::move(store)) {
  for (const int shard : store_->shards()) {
    if (store_->table_rows_of(shard) == nullptr) continue;
    store_->BeginKeeping(shard, kept_[static_cast<uint32_t>(shard)], ledger);
  }
}

TableCopy::~TableCopy() {
  for (auto& [shard, kept] : kept_) store_->EndKeeping(static_cast<int>(shard), kept);
}

Status TableCopy::Check(uint32_t shard, uint32_t slot, uint64_t offset, uint64_t length) const {
  if (!kept_.contains(shard)) {
    return InvalidArgument("shard ", shard, " is not of a table on this server");
  }
  return store_->CheckRange(shard, slot, offset, length);
}

Status TableCopy::Read(uint32_t shard, uint32_t slot, uint64_t offset,
                       std::span<std::byte> to) const {
  return store_->CopyKept(static_cast<int>(shard), kept_.at(shard), static_cast<int>(slot), offset,
                          to);
}

}  // namespace tfjob::ps
