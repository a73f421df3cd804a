#include "runtime/ps/client/copied_tables.h"

#include <algorithm>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/rpc/frame.h"

namespace tfjob::ps {
namespace {

class CopiedValue : public state::StreamedValue {
 public:
  CopiedValue(std::shared_ptr<const CopiedTables> tables, int variable, size_t slot)
      : tables_(std::move(tables)), variable_(variable), slot_(slot) {}

  Status Read(int64_t offset, std::span<std::byte> to) const override {
    return tables_->Read(variable_, slot_, offset, to);
  }
  bool lost() const override { return tables_->lost(); }

 private:
  const std::shared_ptr<const CopiedTables> tables_;
  const int variable_;
  const size_t slot_;
};

// Returns the index of the shard that contains this byte of the variable.
size_t ShardAt(const std::vector<Shard>& shards, int variable, int64_t offset) {
  const auto found = std::ranges::partition_point(shards, [&](const Shard& shard) {
    return shard.variable < variable ||
           (shard.variable == variable && shard.offset + shard.size <= offset);
  });
  ENFORCE(found != shards.end() && found->variable == variable, "a byte of the variable");
  return static_cast<size_t>(found - shards.begin());
}

}  // namespace

void LinkGate::Close() {
  {
    MutexLock lock(mutex_);
    closed_ = true;
  }
  {
    MutexLock lock(context_.mutex);
    context_.closing = true;
    context_.changed.NotifyAll();
  }
  MutexLock lock(mutex_);
  while (inside_ > 0) left_.Wait(mutex_);
}

CopiedTables::~CopiedTables() {
  // Ignore the error: if the client no longer exists, its connections are closed, and the servers
  // have dropped the copy.
  gate_
      ->With([&](LinkContext& context) {
        for (size_t i = 0; i < context.links.size(); ++i) {
          if (numbers_[i] != 0) context.links[i]->DropCopy(numbers_[i]);
        }
        return OkStatus();
      })
      .IgnoreError();
}

Status CopiedTables::Read(int variable, size_t slot, int64_t offset,
                          std::span<std::byte> to) const {
  Status status = ReadPieces(variable, slot, offset, to);
  // After DeadlineExceeded, a slow server may answer the next read. After any other error, the copy
  // is gone.
  if (!status.ok() && !absl::IsDeadlineExceeded(status)) lost_ = true;
  return status;
}

Status CopiedTables::ReadPieces(int variable, size_t slot, int64_t offset,
                                std::span<std::byte> to) const {
  return gate_->With([&](LinkContext& context) -> Status {
    while (!to.empty()) {
      const size_t index = ShardAt(context.shards, variable, offset);
      const Shard& shard = context.shards[index];
      const auto begin = static_cast<size_t>(offset - shard.offset);
      const size_t count =
          std::min({to.size(), static_cast<size_t>(shard.size) - begin, rpc::kFrameTargetBytes});
      const auto server = static_cast<size_t>(shard.server);
      RETURN_IF_ERROR(context.links[server]->ReadCopy(numbers_[server],
                                                      {.shard = static_cast<uint32_t>(index),
                                                       .slot = static_cast<uint32_t>(slot),
                                                       .offset = begin,
                                                       .length = count},
                                                      to.first(count)));
      to = to.subspan(count);
      offset += static_cast<int64_t>(count);
    }
    return OkStatus();
  });
}

std::vector<std::shared_ptr<const state::StreamedValue>> ValuesOf(
    const std::shared_ptr<const CopiedTables>& tables, int variable, size_t slots) {
  std::vector<std::shared_ptr<const state::StreamedValue>> values;
  for (size_t slot = 0; slot <= slots; ++slot)
    values.push_back(std::make_shared<CopiedValue>(tables, variable, slot));
  return values;
}

}  // namespace tfjob::ps
