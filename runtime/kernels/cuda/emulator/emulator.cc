#include "runtime/kernels/cuda/emulator/emulator.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <span>
#include <utility>

#include "runtime/kernels/cuda/emulator/fibers.h"
#include "runtime/kernels/cuda/emulator/lane_products.h"
#include "runtime/kernels/cuda/emulator/shadow.h"

namespace tfjob::kernels::cuda {

State state;

namespace {

using Wait = Thread::Wait;

constexpr unsigned kWarpThreads = 32;
constexpr unsigned kWholeWarp = 0xffffffff;
constexpr uint64_t kPoison = 0x7fc0dead7fc0dead;  // NaN as a float and as half of a double

struct Launch {
  const Entry* kernel = nullptr;
  const void* parameter = nullptr;
  std::vector<Thread> threads;
  uint64_t seed = 0, random = 1;
  bool hangs = false;

  // Xorshift (Marsaglia, "Xorshift RNGs", 2003).
  unsigned Below(unsigned bound) {
    if (seed == 0) return 0;
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    return static_cast<unsigned>(random % bound);
  }
};
Launch launch;
std::vector<std::string> reports;

std::map<std::string, Entry>& Entries() {
  static auto* const kEntries = new std::map<std::string, Entry>;
  return *kEntries;
}

std::string Where(const Thread& thread) {
  const char* const what = thread.wait == Wait::kDone      ? " has left"
                           : thread.wait == Wait::kBarrier ? " waits at a barrier at "
                                                           : " waits for its warp at ";
  std::string text = "thread " + std::to_string(thread.linear) + what;
  if (thread.wait == Wait::kDone || thread.site.file == nullptr) return text;
  return text + thread.site.file + ":" + std::to_string(thread.site.line);
}

void FiberMain() {
  EnterFiber();
  launch.kernel->body(launch.parameter);
  state.current->wait = Wait::kDone;
  LeaveFiber();
  std::abort();
}

void Resume(Thread& thread) {
  state.current = &thread;
  shadow::SetRunning(true);
  ResumeFiber(thread, FiberMain);
  shadow::SetRunning(false);
}

bool Contains(unsigned mask, size_t lane) {
  return (mask >> lane & 1) != 0;
}

// Returns whether all lanes in the mask are waiting with this mask. Reports lanes that are waiting
// in different operations.
bool AllWait(std::span<const Thread> warp, unsigned mask) {
  const Thread* first = nullptr;
  for (size_t lane = 0; lane < warp.size(); ++lane) {
    if (!Contains(mask, lane)) continue;
    const Thread& thread = warp[lane];
    if (thread.wait != Wait::kWarp || thread.mask != mask) return false;
    if (first == nullptr) first = &thread;
    if (thread.site.line != first->site.line)
      Report("warp", "lanes of one mask are at different operations: " + Where(*first) + "; " +
                         Where(thread));
  }
  return true;
}

void Shuffle(std::span<Thread> warp, unsigned mask) {
  for (size_t lane = 0; lane < warp.size(); ++lane) {
    if (!Contains(mask, lane)) continue;
    Thread& thread = warp[lane];
    const size_t source = lane ^ thread.lane_mask;
    if (source < warp.size() && Contains(mask, source)) {
      thread.result = warp[source].value;
    } else {
      Report("shuffle", "lane " + std::to_string(lane) + " reads lane " + std::to_string(source) +
                            ", which does not take part: " + Where(thread));
      thread.result = kPoison;
    }
  }
}

// Completes the operation of the lanes in the mask. Returns false if not all of them have reached
// it.
bool Complete(std::span<Thread> warp, unsigned mask) {
  if (!AllWait(warp, mask)) return false;
  const bool multiplies = mask == kWholeWarp && warp[0].product != nullptr;
  if (!multiplies) {
    Shuffle(warp, mask);
  } else if (warp.size() == kWarpThreads) {
    MultiplyLanes(warp);
  } else {
    Report("product", "the warp has only " + std::to_string(warp.size()) + " lanes");
  }
  for (size_t lane = 0; lane < warp.size(); ++lane)
    if (Contains(mask, lane)) warp[lane].wait = Wait::kReady;
  shadow::EndWarp(warp[0].linear / static_cast<int>(kWarpThreads));
  return true;
}

// Runs a warp until each of its lanes has exited or is waiting at a barrier of the block.
void RunWarp(std::span<Thread> warp) {
  for (;;) {
    bool progress = false;
    const unsigned start = launch.Below(kWarpThreads), flip = launch.Below(kWarpThreads);
    for (unsigned i = 0; i < kWarpThreads; ++i) {
      const unsigned lane = (i + start) % kWarpThreads ^ flip;
      if (lane >= warp.size() || warp[lane].wait != Wait::kReady) continue;
      Resume(warp[lane]);
      progress = true;
    }
    for (const Thread& thread : warp) {
      if (thread.wait != Wait::kWarp || !Complete(warp, thread.mask)) continue;
      progress = true;
      break;
    }
    if (!progress) return;
  }
}

// Lets the threads that are waiting at a barrier continue. Returns false if no thread can continue,
// because all have exited or the block would hang.
bool OpenBarrier() {
  const Thread* at = nullptr;
  const Thread* odd = nullptr;
  bool hangs = false;
  for (const Thread& thread : launch.threads) {
    if (thread.wait == Wait::kBarrier && at == nullptr) at = &thread;
    if (thread.wait == Wait::kWarp) hangs = true;
  }
  for (const Thread& thread : launch.threads) {
    const bool elsewhere = at == nullptr
                               ? thread.wait == Wait::kWarp
                               : thread.wait != Wait::kBarrier || thread.site.line != at->site.line;
    if (elsewhere && odd == nullptr) odd = &thread;
  }
  if (odd != nullptr)
    Report("barrier", "divergent in block " + std::to_string(state.block_index.x) + ": " +
                          (at != nullptr ? Where(*at) + "; " : "") + Where(*odd));
  launch.hangs = hangs;
  if (hangs || at == nullptr) return false;
  for (Thread& thread : launch.threads)
    if (thread.wait == Wait::kBarrier) thread.wait = Wait::kReady;
  shadow::EndInterval();
  return true;
}

void RunBlock(unsigned count) {
  ResetFibers(static_cast<int>(count));
  launch.threads.assign(count, Thread());
  for (unsigned i = 0; i < count; ++i) {
    launch.threads[i].linear = static_cast<int>(i);
    launch.threads[i].index = {i % state.block.x, i / state.block.x % state.block.y,
                               i / (state.block.x * state.block.y)};
  }
  const unsigned warps = (count + kWarpThreads - 1) / kWarpThreads;
  const std::span<Thread> threads = launch.threads;
  do {
    const unsigned start = launch.Below(warps);
    for (unsigned i = 0; i < warps; ++i) {
      const unsigned first = (i + start) % warps * kWarpThreads;
      RunWarp(threads.subspan(first, std::min(kWarpThreads, count - first)));
    }
  } while (OpenBarrier());
}

}  // namespace

Registration::Registration(const char* name, int max_threads, size_t parameter_bytes,
                           void (*body)(const void*)) {
  Entries()[name] = {name, max_threads, parameter_bytes, body};
}

const Entry* FindEntry(const std::string& name) {
  const auto found = Entries().find(name);
  return found == Entries().end() ? nullptr : &found->second;
}

std::vector<const Entry*> AllEntries() {
  std::vector<const Entry*> all;
  for (const auto& [name, entry] : Entries()) all.push_back(&entry);
  return all;
}

void Run(const Entry& kernel, const void* parameter, Dim grid, Dim block, uint64_t seed) {
  const uint64_t count = uint64_t{block.x} * block.y * block.z;
  const uint64_t blocks = uint64_t{grid.x} * grid.y * grid.z;
  // These limits are from the CUDA C++ Programming Guide, "Compute Capabilities".
  if (count == 0 || count > static_cast<uint64_t>(kernel.max_threads) || block.z > 64 ||
      blocks == 0 || grid.x > 0x7fffffff || grid.y > 65535 || grid.z > 65535) {
    return Report("launch", std::string(kernel.name) +
                                ": the launch exceeds the kernel's bounds or a GPU's limits");
  }
  state = {.current = nullptr, .grid = grid, .block = block, .block_index = {}};
  launch.kernel = &kernel;
  launch.parameter = parameter;
  launch.seed = seed;
  launch.random = seed * 0x9e3779b97f4a7c15 + 1;
  launch.hangs = false;
  shadow::BeginLaunch();
  const uint64_t first = launch.Below(static_cast<unsigned>(std::min<uint64_t>(blocks, 1U << 31)));
  const bool backwards = (seed & 1) != 0;
  for (uint64_t i = 0; i < blocks && !launch.hangs; ++i) {
    const uint64_t b = (backwards ? first + blocks - i : first + i) % blocks;
    state.block_index = {static_cast<unsigned>(b % grid.x),
                         static_cast<unsigned>(b / grid.x % grid.y),
                         static_cast<unsigned>(b / grid.x / grid.y)};
    shadow::BeginBlock(b);
    RunBlock(static_cast<unsigned>(count));
  }
  state.current = nullptr;
}

void Barrier(Site site) {
  state.current->wait = Wait::kBarrier;
  state.current->site = site;
  LeaveFiber();
}

uint64_t ShuffleXor(unsigned mask, int lane_mask, uint64_t value, Site site) {
  Thread& thread = *state.current;
  thread.mask = mask;
  thread.lane_mask = static_cast<unsigned>(lane_mask);
  thread.value = value;
  thread.product = nullptr;
  thread.site = site;
  const unsigned lane = static_cast<unsigned>(thread.linear) % kWarpThreads;
  if (!Contains(mask, lane)) {
    Report("shuffle", "lane " + std::to_string(lane) + " calls with a mask that lacks it at " +
                          site.file + ":" + std::to_string(site.line));
    return kPoison;
  }
  thread.wait = Wait::kWarp;
  LeaveFiber();
  return thread.result;
}

void MultiplyByWarp(const LaneProduct& product, Site site) {
  Thread& thread = *state.current;
  thread.mask = kWholeWarp;
  thread.product = &product;
  thread.site = site;
  thread.wait = Wait::kWarp;
  LeaveFiber();
}

void Report(const char* kind, const std::string& text) {
  reports.push_back(std::string(kind) + ": " + text);
}

std::vector<std::string> TakeReports() {
  return std::exchange(reports, {});
}

bool BelongsToLaunch(uintptr_t address) {
  const auto parameter = reinterpret_cast<uintptr_t>(launch.parameter);
  const auto threads = reinterpret_cast<uintptr_t>(launch.threads.data());
  return address - parameter < launch.kernel->parameter_bytes ||
         address - threads < launch.threads.size() * sizeof(Thread);
}

}  // namespace tfjob::kernels::cuda
