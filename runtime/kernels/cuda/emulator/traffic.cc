#include "runtime/kernels/cuda/emulator/traffic.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdio>
#include <cstring>
#include <map>
#include <unordered_map>
#include <utility>

namespace tfjob::kernels::cuda::shadow {
namespace {

constexpr uint32_t kLanes = 32;
constexpr size_t kWarps = 32;

struct Request {
  std::array<uintptr_t, kLanes> address{};
  uint32_t lanes = 0;
  unsigned bytes = 0;
};
struct Instruction {
  bool shared = false;
  std::array<uint16_t, kLanes> accesses{};  // the number of accesses per lane
  std::vector<Request> requests;
};
std::array<std::unordered_map<const void*, Instruction>, kWarps> instructions;  // by warp
std::map<std::pair<const void*, bool>, Traffic> totals;

// Returns the sectors or words that a request touches, each once.
std::vector<uintptr_t> UnitsOf(const Request& request, uintptr_t size) {
  std::vector<uintptr_t> units;
  for (uint32_t lane = 0; lane < kLanes; ++lane) {
    if ((request.lanes >> lane & 1) == 0) continue;
    const uintptr_t last = (request.address[lane] + request.bytes - 1) / size;
    for (uintptr_t unit = request.address[lane] / size; unit <= last; ++unit) units.push_back(unit);
  }
  std::ranges::sort(units);
  units.erase(std::unique(units.begin(), units.end()), units.end());
  return units;
}

void AddShared(const Request& request, Traffic& total) {
  const std::vector<uintptr_t> words = UnitsOf(request, 4);
  std::array<uint64_t, kLanes> banks{};
  for (const uintptr_t word : words) ++banks[word % kLanes];
  total.units += *std::ranges::max_element(banks);
  total.ideal += (words.size() + kLanes - 1) / kLanes;
}

void AddGlobal(const Request& request, Traffic& total) {
  constexpr uintptr_t kSector = 32;
  const uint64_t sectors = UnitsOf(request, kSector).size();
  const uint64_t bytes = static_cast<uint64_t>(std::popcount(request.lanes)) * request.bytes;
  total.units += sectors;
  total.ideal += std::max<uint64_t>(1, std::min(sectors, (bytes + kSector - 1) / kSector));
}

}  // namespace

void CountAccess(uintptr_t address, unsigned bytes, bool shared, const void* pc, uint32_t thread) {
  Instruction& instruction = instructions[thread / kLanes][pc];
  instruction.shared = shared;
  const uint32_t lane = thread % kLanes;
  const size_t k = instruction.accesses[lane]++;
  if (instruction.requests.size() <= k) instruction.requests.resize(k + 1);
  Request& request = instruction.requests[k];
  request.address[lane] = address;
  request.lanes |= 1U << lane;
  request.bytes = bytes;
}

void EndRequests() {
  for (auto& warp : instructions) {
    for (auto& [pc, instruction] : warp) {
      Traffic& total = totals[{pc, instruction.shared}];
      for (const Request& request : instruction.requests)
        (instruction.shared ? AddShared : AddGlobal)(request, total);
      total.requests += instruction.requests.size();
      instruction.requests.clear();
      instruction.accesses.fill(0);
    }
  }
}

std::vector<Traffic> TakeTraffic() {
  EndRequests();
  std::map<std::pair<std::string, bool>, Traffic> lines;
  for (const auto& [instruction, total] : totals) {
    if (total.requests == 0) continue;
    const auto& [pc, shared] = instruction;
    Traffic& line = lines[{LineOf(pc), shared}];
    line.where = LineOf(pc);
    line.shared = shared;
    line.requests += total.requests;
    line.units += total.units;
    line.ideal += total.ideal;
  }
  totals.clear();
  std::vector<Traffic> result;
  for (auto& [key, line] : lines) result.push_back(std::move(line));
  return result;
}

std::string LineOf(const void* pc) {
  static auto* const kKnown = new std::map<const void*, std::string>;
  std::string& text = (*kKnown)[pc];
  if (!text.empty()) return text;
  text = "?";
  Dl_info info{};
  if (dladdr(pc, &info) == 0) return text;
  std::array<char, 400> command{};
  // Subtract 1, because `pc` is the address after the call, which may belong to the next line.
  std::snprintf(command.data(), command.size(), "addr2line -s -e '%s' %#lx 2>/dev/null",
                info.dli_fname,
                reinterpret_cast<uintptr_t>(pc) - 1 - reinterpret_cast<uintptr_t>(info.dli_fbase));
  if (FILE* const pipe = popen(command.data(), "r")) {
    std::array<char, 200> line{};
    if (std::fgets(line.data(), line.size(), pipe) != nullptr && line[0] != '?')
      text.assign(line.data(), std::strcspn(line.data(), " \n"));
    pclose(pipe);
  }
  return text;
}

}  // namespace tfjob::kernels::cuda::shadow
