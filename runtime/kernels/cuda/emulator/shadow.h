// Checks the memory accesses of kernels, without changes to their sources: the kernels are compiled
// with -fsanitize=thread, which inserts a call before every access. hooks.cc defines the functions
// that are called, in place of the sanitizer's run-time library. Reports
//   bounds         an access outside the allocations, or past the end of one
//   uninitialised  a read of a word that has not been written
//   race           two accesses to one byte in the same launch, at least one of them a write, that
//                  no barrier orders
//   alignment      an address that is not a multiple of the access's size
//   local, host    an access to another thread's stack, or to host memory
// and counts the memory transactions of each source line (TakeTraffic). A word has four bytes.
//
// The test program must be linked statically: shared memory is recognised as its static variables.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tfjob::kernels::cuda::shadow {

// Returns whether this program's kernels were compiled with the calls, which builds with a
// sanitizer omit.
bool Enabled();

// Sets the address range of the allocations, which kernels may access.
void SetArena(uintptr_t base, size_t bytes);
void Allocated(uintptr_t address, size_t bytes, const std::string& name);
// Forgets all allocations and all writes.
void Reset();
// Forgets an allocation.
void Freed(uintptr_t address);
// Record that a copy or a library has written the range, or is about to read it. Report ranges that
// are not within an allocation, and reads of words that have not been written. Ignore addresses
// outside the arena.
void HostWrote(uintptr_t address, size_t bytes);
void HostReads(uintptr_t address, size_t bytes);
// Returns the index of the first word in the range that has not been written, or -1 if there is
// none.
int64_t FirstUninitialised(uintptr_t address, size_t bytes);

// The cost of the memory accesses that one source line makes, counted over the first few blocks of
// each launch.
struct Traffic {
  std::string where;  // "update.cu:57"
  bool shared = false;
  uint64_t requests = 0;  // accesses by warps
  uint64_t units = 0;     // sectors of 32 bytes; for shared memory, passes over the banks
  uint64_t ideal = 0;     // the fewest units in which the same bytes can be moved
};
std::vector<Traffic> TakeTraffic();

// The emulator calls these functions.
void BeginLaunch();
void BeginBlock(uint64_t block);
void EndInterval();      // all threads of the block have reached a barrier
void EndWarp(int warp);  // a warp has synchronised
void SetRunning(bool running);

// Called before each memory access by a kernel. `pc` is the return address of the call.
enum class Kind : uint8_t { kRead, kWrite };
void Access(uintptr_t address, unsigned bytes, Kind kind, const void* pc);
void Enable();

}  // namespace tfjob::kernels::cuda::shadow
