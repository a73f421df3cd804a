// Runs CUDA kernels on the host, for tests. Every CUDA thread is a fiber of one host thread. Blocks
// run one after another. Between synchronisations, warps and lanes take turns in an order that is
// drawn from a seed. Behaviour that would be wrong on a GPU, such as a barrier that not all threads
// of a block reach, is reported (TakeReports); shadow.h reports invalid memory accesses.
//
// Not thread-safe: only one launch may run at a time. Supports only x86-64.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace tfjob::kernels::cuda {

struct Dim {
  unsigned x = 1, y = 1, z = 1;
};

// A line of a kernel's source.
struct Site {
  const char* file = nullptr;
  int line = 0;
};

// One lane's part of a product of matrices that its warp computes together (matrix_units.h):
// c += a·b, where a is [16,16], b is [16,8], and both are of half types. A pair contains two
// elements. The arrays are on the lane's stack.
struct LaneProduct {
  const uint32_t* a;  // 4 pairs
  const uint32_t* b;  // 2 pairs
  float* c;           // 4 elements
  float (*widen)(uint16_t bits);
};

// A CUDA thread of the running block.
struct Thread {
  enum class Wait : uint8_t { kReady, kBarrier, kWarp, kDone };

  Dim index;
  int linear = 0;        // its index in the block
  int stack = -1;        // the stack of its fiber; -1: none
  void* sp = nullptr;    // the fiber's stack pointer while it does not run
  void* asan = nullptr;  // the address sanitizer's state of the fiber
  Wait wait = Wait::kReady;
  bool started = false;
  // The shuffle, or the product if `product` is not null, in which the thread is waiting.
  unsigned mask = 0;
  unsigned lane_mask = 0;
  Site site;
  uint64_t value = 0, result = 0;
  const LaneProduct* product = nullptr;
};

// The block and the thread that are running.
struct State {
  Thread* current = nullptr;
  Dim grid, block, block_index;
};
extern State state;

// A kernel and its name.
struct Entry {
  const char* name = nullptr;
  int max_threads = 0;
  size_t parameter_bytes = 0;
  void (*body)(const void* parameter) = nullptr;
};
// Returns null if no kernel of this name is linked into the program.
const Entry* FindEntry(const std::string& name);
// Returns all kernels that are linked into the program.
std::vector<const Entry*> AllEntries();
struct Registration {
  Registration(const char* name, int max_threads, size_t parameter_bytes,
               void (*body)(const void*));
};

// Runs all blocks. If the seed is 0, everything runs in order.
void Run(const Entry& kernel, const void* parameter, Dim grid, Dim block, uint64_t seed);

// Kernels call the next functions through shim.h.
void Barrier(Site site);
uint64_t ShuffleXor(unsigned mask, int lane_mask, uint64_t value, Site site);
void MultiplyByWarp(const LaneProduct& product, Site site);

// Records a report, such as "race: write of out+0x10 at update.cu:17 …".
void Report(const char* kind, const std::string& text);
// Returns the reports that were recorded since the last call, and clears them.
std::vector<std::string> TakeReports();

// Returns true if the address belongs to the parameter or the threads of the running launch.
bool BelongsToLaunch(uintptr_t address);

}  // namespace tfjob::kernels::cuda
