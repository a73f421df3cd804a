// Implements how a store preserves the state of shards as of one moment while updates change them.
#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/ps/server/store.h"

namespace tfjob::ps {

void Store::BeginKeeping(int shard, KeptShard& kept, std::string& ledger) {
  Entry& entry = At(shard);
  MutexLock lock(entry.mutex);
  entry.keepers.push_back(&kept);
  AppendEntries(shard, entry.ledger, ledger);
}

void Store::EndKeeping(int shard, KeptShard& kept) {
  Entry& entry = At(shard);
  MutexLock lock(entry.mutex);
  std::erase(entry.keepers, &kept);
}

void Store::KeepBeforeWrite(Entry& entry) {
  if (entry.keepers.empty()) return;
  const std::shared_ptr<const Buffer> copy = CopyWithinLimit(*entry.state);
  for (KeptShard* kept : entry.keepers) {
    kept->state = copy;
    kept->lost = copy == nullptr;
  }
  entry.keepers.clear();
}

void Store::CountIn(std::shared_ptr<StateMemory> memory, int64_t bytes) {
  memory_ = std::move(memory);
  counted_bytes_ = bytes;
  memory_->Take(bytes);
}

Store::~Store() {
  if (memory_ != nullptr) memory_->Return(counted_bytes_);
}

std::shared_ptr<const Buffer> Store::CopyWithinLimit(const Buffer& state) {
  const auto bytes = static_cast<int64_t>(state.size());
  // Count the bytes before allocating them, because other shards may be copied at the same time.
  if (memory_ != nullptr && !memory_->TryTake(bytes)) return nullptr;
  kept_bytes_ += bytes;
  const auto release = [this](const Buffer* copy) {
    const auto size = static_cast<int64_t>(copy->size());
    delete copy;
    kept_bytes_ -= size;
    if (memory_ != nullptr) memory_->Return(size);
  };
  const std::shared_ptr<Buffer> copy(new Buffer(state.size(), Buffer::Contents::kUndefined),
                                     release);
  std::memcpy(copy->data(), state.data(), state.size());
  return copy;
}

Status Store::CopyKept(int shard, const KeptShard& kept, int part, size_t offset,
                       std::span<std::byte> to) {
  Entry& entry = At(shard);
  MutexLock lock(entry.mutex);
  if (kept.lost) {
    return ResourceExhausted("shard ", shard, " has changed, and there was no memory to keep it: ",
                             "use more parameter servers, or raise their memory limit");
  }
  const size_t begin = static_cast<size_t>(part) * entry.stride + offset;
  const Buffer& state = kept.state == nullptr ? *entry.state : *kept.state;
  std::memcpy(to.data(), state.data() + begin, to.size());
  return OkStatus();
}

}  // namespace tfjob::ps
