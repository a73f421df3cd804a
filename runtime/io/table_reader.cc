#include "runtime/io/table_reader.h"

#include <cstdint>
#include <cstring>

#include "runtime/base/varint.h"
#include "runtime/io/crc32c.h"

namespace tfjob::io {
namespace {

constexpr size_t kFooterBytes = 48;  // two block handles, padded to 40 bytes, and the magic number
constexpr size_t kTrailerBytes = 5;  // a block's compression type and masked checksum
constexpr size_t kMaxKeyBytes = 1 << 16;
constexpr uint64_t kTableMagic = 0xdb4775248b80fb57;

using Entries = std::vector<std::pair<std::string, std::string>>;

struct BlockHandle {
  uint64_t offset = 0;
  uint64_t size = 0;
};

template <typename T>
T LoadFixed(std::string_view bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof(T));  // x86-64 is little-endian
  return value;
}

bool TakeHandle(std::string_view& text, BlockHandle& handle) {
  return TakeVarint(text, handle.offset) && TakeVarint(text, handle.size);
}

// Returns the content of a block, without its trailer.
StatusOr<std::string_view> Block(std::string_view file, const BlockHandle& handle) {
  const uint64_t blocks = file.size() - kFooterBytes;
  if (handle.offset > blocks || handle.size > blocks - handle.offset ||
      blocks - handle.offset - handle.size < kTrailerBytes) {
    return DataLoss("a block of ", handle.size, " bytes at byte ", handle.offset,
                    " is outside the file");
  }
  const std::string_view block = file.substr(handle.offset, handle.size);
  const std::string_view trailer = file.substr(handle.offset + handle.size, kTrailerBytes);
  if (MaskCrc(Crc32c(file.substr(handle.offset, handle.size + 1))) !=
      LoadFixed<uint32_t>(trailer.substr(1))) {
    return DataLoss("the checksum of the block at byte ", handle.offset, " is wrong");
  }
  if (trailer[0] != 0) return Unimplemented("the block at byte ", handle.offset, " is compressed");
  return block;
}

// Reads the entries of a block. Each entry starts with the number of bytes that its key shares with
// the previous key, the number of further bytes of the key, and the size of the value. The last
// entry is followed by the array of restart points, which only searches need. `budget` limits the
// memory of the entries, so that a small file cannot exhaust the memory.
Status ReadBlock(std::string_view block, size_t& budget, Entries& entries) {
  const auto damaged = [] { return DataLoss("an entry of a block is damaged"); };
  if (block.size() < sizeof(uint32_t)) return damaged();
  const uint64_t restarts = LoadFixed<uint32_t>(block.substr(block.size() - sizeof(uint32_t)));
  if (restarts > (block.size() - sizeof(uint32_t)) / sizeof(uint32_t)) return damaged();
  block.remove_suffix((restarts + 1) * sizeof(uint32_t));
  std::string key;
  while (!block.empty()) {
    uint64_t shared = 0, unshared = 0, value = 0;
    if (!TakeVarint(block, shared) || !TakeVarint(block, unshared) || !TakeVarint(block, value))
      return damaged();
    if (shared > key.size() || unshared > block.size() || value > block.size() - unshared)
      return damaged();
    key.resize(shared);
    key.append(block.substr(0, unshared));
    // Also count the string objects. They use 64 bytes per entry, whereas an entry of a checkpoint
    // uses at least 16 bytes of the file.
    const size_t cost = sizeof(Entries::value_type) + key.size() + value;
    if (key.size() > kMaxKeyBytes || cost > budget)
      return DataLoss("its entries take more memory than a checkpoint's index may");
    budget -= cost;
    entries.emplace_back(key, block.substr(unshared, value));
    block.remove_prefix(unshared + value);
  }
  return OkStatus();
}

}  // namespace

StatusOr<Entries> ReadTable(std::string_view file) {
  if (file.size() < kFooterBytes) return DataLoss("it has only ", file.size(), " bytes");
  std::string_view footer = file.substr(file.size() - kFooterBytes);
  if (LoadFixed<uint64_t>(footer.substr(kFooterBytes - sizeof(uint64_t))) != kTableMagic)
    return DataLoss("its last bytes are not those of a table");
  BlockHandle metadata, index;
  if (!TakeHandle(footer, metadata) || !TakeHandle(footer, index))
    return DataLoss("its footer is damaged");
  // LevelDB stores at least every 16th key completely, so a table expands by a factor of at most
  // about 16.
  size_t budget = file.size() * 32 + (1 << 20);
  Entries blocks, entries;
  ASSIGN_OR_RETURN(std::string_view index_block, Block(file, index));
  RETURN_IF_ERROR(ReadBlock(index_block, budget, blocks));
  uint64_t end = 0;
  for (const auto& [last_key, place] : blocks) {
    std::string_view text = place;
    BlockHandle handle;
    if (!TakeHandle(text, handle)) return DataLoss("an entry of its index is damaged");
    ASSIGN_OR_RETURN(std::string_view block, Block(file, handle));
    // Reject overlapping blocks. Otherwise, an index could list one block many times, and each read
    // of the block would use time and memory.
    if (handle.offset < end) return DataLoss("its blocks overlap, or are not in order");
    end = handle.offset + handle.size;
    RETURN_IF_ERROR(ReadBlock(block, budget, entries));
  }
  return entries;
}

}  // namespace tfjob::io
