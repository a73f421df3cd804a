#include "runtime/trace/totals.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

namespace tfjob::trace {

std::vector<Total> OpTotals(const Trace& trace) {
  std::map<std::pair<std::string_view, std::string_view>, Total> by_name;
  for (const ThreadEvents& thread : trace.threads) {
    for (const Event& event : thread.events) {
      if (event.category != Category::kOp) continue;
      Total& total = by_name[{event.name.view(), event.kind.view()}];
      ++total.calls;
      total.ns += event.duration_ns;
    }
  }
  std::vector<Total> totals;
  for (auto& [key, total] : by_name) {
    totals.push_back({std::string(key.first), std::string(key.second), total.calls, total.ns});
  }
  std::ranges::sort(totals, [](const Total& a, const Total& b) {
    return std::tie(b.ns, a.name) < std::tie(a.ns, b.name);
  });
  return totals;
}

}  // namespace tfjob::trace
