#include "runtime/kernels/cuda/emulator/shadow.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <unordered_map>

#include "runtime/kernels/cuda/emulator/emulator.h"
#include "runtime/kernels/cuda/emulator/fibers.h"
#include "runtime/kernels/cuda/emulator/traffic.h"

// The linker defines these symbols: the first byte of the program, and the beginning and end of its
// static variables.
extern "C" char __executable_start, __data_start, _end;

namespace tfjob::kernels::cuda::shadow {
namespace {

constexpr uint32_t kMany = 2047;   // replaces a thread's number if there are several threads
constexpr int kWatchedBlocks = 4;  // the blocks of a launch whose traffic is counted

// The last read or write of a word or a byte. A segment is the part of one block's execution
// between two barriers. Segments are numbered throughout the run of the program; segment 0 means
// that there was no access.
struct Stamp {
  uint32_t segment = 0;
  uint32_t thread : 11 = 0;
  uint32_t epoch : 21 = 0;  // the number of times that the thread's warp had synchronised by then
};
constexpr uint32_t kEpochs = 0x1fffff;
struct Cell {
  Stamp write, read;
};
// Used in place of a segment for words that were accessed in parts. Each byte of such a word has
// its own cell.
constexpr uint32_t kInBytes = 0xffffffff;
struct Segment {
  uint64_t launch = 0;
  uint64_t block = 0;
};
struct Allocation {
  uintptr_t end = 0;
  std::string name;
};

// A separate variable, because it is set before the constructors of static objects run.
constinit bool enabled = false;

struct Shadow {
  bool running = false;
  uintptr_t arena = 0;
  size_t arena_bytes = 0;
  Cell* device_cells = nullptr;
  Cell* shared_cells = nullptr;
  std::unordered_map<const Cell*, std::array<Cell, 4>> bytes;  // by the word's cell
  std::map<uintptr_t, Allocation> allocations;                 // by address
  std::vector<Segment> segments{1};
  uint64_t launch = 0;
  uint32_t block_begin = 0;  // the first segment of the running block
  int watched_blocks = 0;
  std::array<uint32_t, 32> epochs{};  // by warp
};
Shadow s;

// Returns cells that are zero. Only those pages that are accessed use physical memory.
Cell* MapCells(size_t words) {
  void* const memory = mmap(nullptr, words * sizeof(Cell), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) std::abort();
  return static_cast<Cell*>(memory);
}

uint32_t Now() {
  return static_cast<uint32_t>(s.segments.size()) - 1;
}

// Returns whether, on every GPU, the access (or accesses) in `old` would happen before the current
// access by `thread`.
bool Ordered(const Stamp& old, uint32_t thread) {
  if (old.segment == Now()) {
    if (old.thread == thread) return true;
    if (old.thread == kMany) return false;
    return old.thread / 32 == thread / 32 && old.epoch != (s.epochs[thread / 32] & kEpochs);
  }
  const Segment& segment = s.segments[old.segment];
  return segment.launch != s.launch || segment.block == s.segments[Now()].block;
}

// The target of an access. Converted to text only for reports.
struct Place {
  const std::string& name;
  uintptr_t offset = 0;

  std::string ToString() const { return name + "+" + std::to_string(offset); }
};

void ReportRace(Kind kind, const Place& place, const char* other, const Stamp& old,
                const void* pc) {
  const Segment& segment = s.segments[old.segment];
  Report("race", std::string(kind == Kind::kRead ? "read" : "write") + " of " + place.ToString() +
                     " at " + LineOf(pc) + ", not ordered after a " + other + " of block " +
                     std::to_string(segment.block) + ", thread " +
                     (old.thread == kMany ? "several" : std::to_string(old.thread)));
}

// Checks an access to a word or a byte. Ignores stamps from segments before `valid_from`.
void Touch(Cell& cell, Kind kind, uint32_t thread, uint32_t valid_from, const Place& place,
           const void* pc) {
  const auto valid = [valid_from](const Stamp& stamp) {
    return stamp.segment != 0 && stamp.segment >= valid_from;
  };
  if (valid(cell.write) && !Ordered(cell.write, thread))
    ReportRace(kind, place, "write", cell.write, pc);
  if (kind == Kind::kRead && !valid(cell.write))
    Report("uninitialised", "read of " + place.ToString() + " at " + LineOf(pc));
  if (kind == Kind::kWrite && valid(cell.read) && !Ordered(cell.read, thread))
    ReportRace(kind, place, "read", cell.read, pc);
  Stamp& mine = kind == Kind::kRead ? cell.read : cell.write;
  const bool again = valid(mine) && mine.segment == Now();
  mine.thread = again && mine.thread != thread ? kMany : thread;
  mine.segment = Now();
  mine.epoch = s.epochs[thread / 32 % 32] & kEpochs;
}

constexpr uint32_t kWholeWord = 0xf;

// Calls body(cell) for the cells of some bytes of a word. Different threads may access different
// bytes of a word.
template <typename Body>
void ForCells(Cell& word, uint32_t mask, const Body& body) {
  if (mask == kWholeWord && word.write.segment != kInBytes) return body(word);
  std::array<Cell, 4>& bytes = s.bytes[&word];
  if (word.write.segment != kInBytes) {
    bytes.fill(word);
    word.write.segment = kInBytes;
  }
  for (size_t i = 0; i < bytes.size(); ++i)
    if ((mask >> i & 1) != 0) body(bytes[i]);
}

// Calls body(word's address, mask of its bytes) for the words of a range.
template <typename Body>
void ForWords(uintptr_t address, size_t bytes, const Body& body) {
  for (uintptr_t a = address; a < address + bytes;) {
    const uintptr_t word = a & ~uintptr_t{3};
    const uintptr_t end = std::min(word + 4, address + bytes);
    uint32_t mask = 0;
    for (; a < end; ++a) mask |= 1U << (a - word);
    body(word, mask);
  }
}

Cell& DeviceCell(uintptr_t word) {
  return s.device_cells[(word - s.arena) / 4];
}

// Reports an access before it happens. Prints the report immediately, because the access may end
// the process.
void ReportWild(const char* kind, const std::string& text) {
  Report(kind, text);
  std::fprintf(stderr, "%s: %s\n", kind, text.c_str());
}

void AccessDevice(uintptr_t address, unsigned bytes, Kind kind, const void* pc, uint32_t thread) {
  const auto what = [kind, bytes] {
    return std::string(kind == Kind::kRead ? "read" : "write") + " of " + std::to_string(bytes) +
           " bytes ";
  };
  auto found = s.allocations.upper_bound(address);
  if (found == s.allocations.begin() || std::prev(found)->second.end <= address) {
    return Report("bounds", what() + "outside of every allocation at " + LineOf(pc));
  }
  const auto& [begin, allocation] = *std::prev(found);
  if (address + bytes > allocation.end) {
    return Report("bounds", what() + "past the end of " + allocation.name + " at " + LineOf(pc));
  }
  if (address % bytes != 0)
    Report("alignment", what() + "of " + allocation.name + " at " + LineOf(pc));
  ForWords(address, bytes, [&](uintptr_t word, uint32_t mask) {
    ForCells(DeviceCell(word), mask, [&](Cell& cell) {
      Touch(cell, kind, thread, /*valid_from=*/1, {allocation.name, word - begin}, pc);
    });
  });
  if (s.watched_blocks <= kWatchedBlocks) CountAccess(address, bytes, false, pc, thread);
}

void AccessShared(uintptr_t address, unsigned bytes, Kind kind, const void* pc, uint32_t thread) {
  const uintptr_t data = reinterpret_cast<uintptr_t>(&__data_start) & ~uintptr_t{3};
  if (s.shared_cells == nullptr)
    s.shared_cells = MapCells((reinterpret_cast<uintptr_t>(&_end) - data) / 4 + 1);
  static const auto* const kPlace = new std::string("shared memory");
  ForWords(address, bytes, [&](uintptr_t word, uint32_t mask) {
    ForCells(s.shared_cells[(word - data) / 4], mask, [&](Cell& cell) {
      Touch(cell, kind, thread, s.block_begin, {*kPlace, word - data}, pc);
    });
  });
  if (s.watched_blocks <= kWatchedBlocks) CountAccess(address, bytes, true, pc, thread);
}

// Returns whether one allocation contains the range. If the range is in the arena, but in no
// allocation, reports that it was accessed by a copy or a library.
bool IsAllocated(uintptr_t address, size_t bytes, const char* accessed) {
  if (s.device_cells == nullptr || address - s.arena >= s.arena_bytes) return false;
  const auto after = s.allocations.upper_bound(address);
  if (after != s.allocations.begin() && address + bytes <= std::prev(after)->second.end)
    return true;
  Report("bounds", std::to_string(bytes) + " bytes " + accessed +
                       " by a copy or a library outside of every allocation");
  return false;
}

}  // namespace

bool Enabled() {
  return enabled;
}
void Enable() {
  enabled = true;
}

void SetArena(uintptr_t base, size_t bytes) {
  s.arena = base;
  s.arena_bytes = bytes;
  s.device_cells = MapCells(bytes / 4);
}

void Allocated(uintptr_t address, size_t bytes, const std::string& name) {
  s.allocations[address] = {address + bytes, name};
}

void Reset() {
  s.allocations.clear();
  s.bytes.clear();
  if (s.device_cells != nullptr)
    madvise(s.device_cells, s.arena_bytes / 4 * sizeof(Cell), MADV_DONTNEED);
}

void Freed(uintptr_t address) {
  s.allocations.erase(address);
}

void HostWrote(uintptr_t address, size_t bytes) {
  if (!IsAllocated(address, bytes, "written")) return;
  ++s.launch;
  s.segments.push_back({s.launch, 0});
  ForWords(address, bytes, [](uintptr_t word, uint32_t mask) {
    ForCells(DeviceCell(word), mask, [](Cell& cell) { cell.write = {.segment = Now()}; });
  });
}

void HostReads(uintptr_t address, size_t bytes) {
  if (!IsAllocated(address, bytes, "read")) return;
  if (const int64_t word = FirstUninitialised(address, bytes); word >= 0) {
    const auto& [begin, allocation] = *std::prev(s.allocations.upper_bound(address));
    Report("uninitialised", "a copy or a library reads " + allocation.name + "+" +
                                std::to_string(address - begin + 4 * static_cast<size_t>(word)));
  }
}

int64_t FirstUninitialised(uintptr_t address, size_t bytes) {
  int64_t first = -1;
  ForWords(address, bytes, [&](uintptr_t word, uint32_t mask) {
    ForCells(DeviceCell(word), mask, [&](const Cell& cell) {
      if (first < 0 && cell.write.segment == 0)
        first = static_cast<int64_t>((word - (address & ~uintptr_t{3})) / 4);
    });
  });
  return first;
}

void BeginLaunch() {
  ++s.launch;
  s.watched_blocks = 0;
}

void BeginBlock(uint64_t block) {
  EndRequests();
  ++s.watched_blocks;
  s.segments.push_back({s.launch, block});
  s.block_begin = Now();
}

void EndInterval() {
  EndRequests();
  s.segments.push_back(s.segments.back());
}

void EndWarp(int warp) {
  ++s.epochs[static_cast<size_t>(warp)];
}

void SetRunning(bool running) {
  s.running = running;
}

void Access(uintptr_t address, unsigned bytes, Kind kind, const void* pc) {
  if (!s.running) return;
  const auto thread = static_cast<uint32_t>(state.current->linear);
  if (address - s.arena < s.arena_bytes) return AccessDevice(address, bytes, kind, pc, thread);
  const uintptr_t data = reinterpret_cast<uintptr_t>(&__data_start) & ~uintptr_t{3};
  if (address >= data && address < reinterpret_cast<uintptr_t>(&_end)) {
    const bool own = address - reinterpret_cast<uintptr_t>(&state) < sizeof state;
    return own ? void() : AccessShared(address, bytes, kind, pc, thread);
  }
  if (BelongsToLaunch(address)) return;
  const int stack = StackOf(address);
  if (stack >= 0) {
    if (stack != state.current->stack)
      Report("local", "access to the stack of another thread at " + LineOf(pc));
    return;
  }
  // Constants are stored before the static variables, and may be read.
  const bool constant = kind == Kind::kRead &&
                        address >= reinterpret_cast<uintptr_t>(&__executable_start) &&
                        address < data;
  if (!constant) ReportWild("host", "access to memory of the host at " + LineOf(pc));
}

}  // namespace tfjob::kernels::cuda::shadow
