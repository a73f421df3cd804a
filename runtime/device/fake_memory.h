// Implements the fake device's memory. The host can never access the addresses of device memory,
// because the contents are stored elsewhere. Pinned memory is mapped twice, once for operations and
// once for the host; the host's mapping is inaccessible while operations use the memory. Addresses
// are never reused.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "runtime/base/status.h"
#include "runtime/device/device_runtime.h"

namespace tfjob::device {

// Prints the message and aborts the process. Called if the rules of the device are broken.
[[noreturn]] void Defect(const std::string& message);

// Prints to stderr which block contains the address, which the host has accessed. Prints nothing if
// no block contains it.
void OnFakeFault(const void* address);

struct Block {
  std::byte* address = nullptr;  // the address that the host and operands use
  std::byte* storage = nullptr;  // where operations access the content
  size_t bytes = 0;
  size_t mapped = 0;  // bytes mapped at `address`
  MemoryKind kind = MemoryKind::kDevice;
  std::string name;
  bool freed = false;
  int readers = 0, writers = 0;        // operations that the host has not waited for
  std::shared_ptr<std::byte> content;  // set only for device memory
};

// Allocates the content of device memory.
using ContentAllocator =
    std::function<std::shared_ptr<std::byte>(size_t bytes, const std::string& name)>;

// Not thread-safe.
class FakeMemory {
 public:
  // If `allocator` is empty, the contents are in ordinary memory. `limit` is the number of bytes
  // that may be allocated at a time.
  FakeMemory(size_t limit, ContentAllocator allocator);
  ~FakeMemory();
  FakeMemory(const FakeMemory&) = delete;
  FakeMemory& operator=(const FakeMemory&) = delete;

  // Allocates a block. `kind` must not be kHost. Fills undefined memory with the byte 0xff, so that
  // floats in it are NaN.
  StatusOr<void*> Allocate(MemoryKind kind, size_t bytes, Buffer::Contents contents,
                           std::string_view name);
  // Frees the memory. Calls Defect if an operation may still use the memory.
  void Free(void* address);

  // Returns the block that contains the range. If there is no such block, or if it has been freed,
  // calls Defect with a message that names `user`, the operation.
  Block& Get(const void* address, size_t bytes, const std::string& user);

  // Adds an operation to the users of the block (`count` is 1), or removes it (-1).
  static void Use(Block& block, bool writes, int count);

 private:
  friend void OnFakeFault(const void* address);

  Block* Find(const void* address);

  const size_t limit_;
  const ContentAllocator allocator_;
  size_t used_ = 0;
  std::map<const std::byte*, Block> blocks_;  // by address
  FakeMemory* next_ = nullptr;                // next in the fault handler's list
};

}  // namespace tfjob::device
