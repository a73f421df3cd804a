#include "runtime/device/fake_memory.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "runtime/base/mutex.h"

namespace tfjob::device {
namespace {

constexpr size_t kPage = 4096;

size_t Pages(size_t bytes) {
  return (bytes + kPage - 1) / kPage * kPage;
}

// The list of all FakeMemory objects in the process. The fault handler reads it without the lock,
// because the process is about to abort.
Mutex list_mutex;
std::atomic<FakeMemory*> first_memory{nullptr};

struct sigaction previous_action;

// Reports which memory was accessed. Then restores the previous handler, and lets the fault happen
// again.
void HandleFault(int, siginfo_t* info, void*) {
  OnFakeFault(info->si_addr);
  sigaction(SIGSEGV, &previous_action, nullptr);
}

void InstallHandler() {
  static const bool kInstalled = [] {
    struct sigaction action{};
    action.sa_sigaction = HandleFault;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, &previous_action);
    return true;
  }();
  static_cast<void>(kInstalled);
}

Status MapFailed(std::string_view name) {
  return ResourceExhausted("fake device: cannot map memory for ", name, ": ", std::strerror(errno));
}

// Maps the contents of pinned memory twice.
Status MapPinned(Block& block) {
  const int file = memfd_create("tfjob-pinned", MFD_CLOEXEC);
  if (file < 0) return MapFailed(block.name);
  void* storage = MAP_FAILED;
  void* view = MAP_FAILED;
  if (ftruncate(file, static_cast<off_t>(block.mapped)) == 0) {
    storage = mmap(nullptr, block.mapped, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    view =
        mmap(block.address, block.mapped, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0);
  }
  close(file);
  if (storage == MAP_FAILED || view == MAP_FAILED) return MapFailed(block.name);
  block.storage = static_cast<std::byte*>(storage);
  return OkStatus();
}

std::shared_ptr<std::byte> AllocateOnHost(size_t bytes, const std::string&) {
  const auto buffer = std::make_shared<Buffer>(bytes, Buffer::Contents::kUndefined);
  return {buffer, buffer->data()};
}

}  // namespace

void Defect(const std::string& message) {
  std::fprintf(stderr, "fake device: %s\n", message.c_str());
  std::abort();
}

void OnFakeFault(const void* address) {
  for (FakeMemory* memory = first_memory; memory != nullptr; memory = memory->next_) {
    const Block* const block = memory->Find(address);
    if (block == nullptr) continue;
    char text[400];
    // At most 300 bytes of the name are printed, so the whole line fits into `text`.
    const int length = std::snprintf(
        text, sizeof text, "fake device: the host touches %s memory of %.300s%s\n",
        Name(block->kind).data(), block->name.c_str(),
        block->freed ? ", which has been freed"
                     : (block->kind == MemoryKind::kPinned ? ", which an operation may use" : ""));
    if (length > 0 && write(STDERR_FILENO, text, static_cast<size_t>(length)) < 0) std::abort();
  }
}

FakeMemory::FakeMemory(size_t limit, ContentAllocator allocator)
    : limit_(limit), allocator_(allocator ? std::move(allocator) : AllocateOnHost) {
  InstallHandler();
  MutexLock lock(list_mutex);
  next_ = first_memory;
  first_memory = this;
}

FakeMemory::~FakeMemory() {
  {
    MutexLock lock(list_mutex);
    if (first_memory == this) {
      first_memory = next_;
    } else {
      FakeMemory* before = first_memory;
      while (before->next_ != this) before = before->next_;
      before->next_ = next_;
    }
  }
  for (auto& [address, block] : blocks_) {
    if (!block.freed && block.kind == MemoryKind::kPinned) munmap(block.storage, block.mapped);
    munmap(block.address, block.mapped + kPage);
  }
}

StatusOr<void*> FakeMemory::Allocate(MemoryKind kind, size_t bytes, Buffer::Contents contents,
                                     std::string_view name) {
  if (bytes > limit_ - used_) {
    return ResourceExhausted(name, " needs ", bytes, " bytes of memory, but the fake device has ",
                             limit_, " bytes, of which ", used_, " are in use");
  }
  Block block{.bytes = bytes, .mapped = Pages(bytes + 1), .kind = kind, .name = std::string(name)};
  // The page after the memory stays inaccessible, so that there is a gap between blocks.
  void* const address = mmap(nullptr, block.mapped + kPage, PROT_NONE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED) return MapFailed(name);
  block.address = static_cast<std::byte*>(address);
  if (kind == MemoryKind::kPinned) {
    RETURN_IF_ERROR(MapPinned(block));
  } else {
    block.content = allocator_(bytes, block.name);
    block.storage = block.content.get();
  }
  std::memset(block.storage, contents == Buffer::Contents::kUndefined ? 0xff : 0, bytes);
  used_ += bytes;
  blocks_.insert_or_assign(block.address, std::move(block));
  return address;
}

void FakeMemory::Free(void* address) {
  Block& block = Get(address, 0, "free");
  if (block.address != address) Defect("free of an address inside " + block.name);
  if (block.readers + block.writers > 0) {
    Defect("free of " + block.name + ", which an operation may still use");
  }
  if (block.kind == MemoryKind::kPinned) {
    munmap(block.storage, block.mapped);
    mmap(block.address, block.mapped, PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  }
  block.content.reset();
  block.storage = nullptr;
  block.freed = true;
  used_ -= block.bytes;
}

Block* FakeMemory::Find(const void* address) {
  const auto* const at = static_cast<const std::byte*>(address);
  const auto after = blocks_.upper_bound(at);
  if (after == blocks_.begin()) return nullptr;
  Block& block = std::prev(after)->second;
  return at < block.address + block.mapped + kPage ? &block : nullptr;
}

Block& FakeMemory::Get(const void* address, size_t bytes, const std::string& user) {
  Block* const block = Find(address);
  if (block == nullptr) {
    Defect(StrCat(user, " uses memory of the host: only device and pinned memory is allowed"));
  }
  if (block->freed) Defect(StrCat(user, " uses the memory of ", block->name, " after its free"));
  const auto offset = static_cast<size_t>(static_cast<const std::byte*>(address) - block->address);
  if (offset > block->bytes || bytes > block->bytes - offset) {
    Defect(StrCat(user, " uses bytes ", offset, " to ", offset + bytes, " of ", block->name,
                  ", which has ", block->bytes));
  }
  return *block;
}

void FakeMemory::Use(Block& block, bool writes, int count) {
  const auto rights = [&block] {
    if (block.writers > 0) return PROT_NONE;
    return block.readers > 0 ? PROT_READ : PROT_READ | PROT_WRITE;
  };
  const int before = rights();
  (writes ? block.writers : block.readers) += count;
  if (block.kind != MemoryKind::kPinned || rights() == before) return;
  if (mprotect(block.address, block.mapped, rights()) != 0) {
    Defect(StrCat("cannot lock the memory of ", block.name, ": ", std::strerror(errno)));
  }
}

}  // namespace tfjob::device
