#include "runtime/strategy/positions.h"

#include <sstream>

#include "runtime/base/status.h"

namespace tfjob::strategy {
namespace {

// Marks a line that records a position. Lines about shards start with the shard's index.
constexpr int kPosition = -3;
constexpr int64_t kGreatestPosition = int64_t{1} << 60;

}  // namespace

std::string PositionRecord(const state::TaskId& task, int64_t drawn) {
  return StrCat(kPosition, " ", task.type, " ", task.index, " 0 ", drawn, "\n");
}

std::optional<int64_t> OnlyPosition(const std::string& ledger) {
  std::optional<int64_t> found;
  std::istringstream lines(ledger);
  int shard = 0;
  std::string type, index, incarnation;
  for (int64_t number = 0; lines >> shard >> type >> index >> incarnation >> number;) {
    if (shard != kPosition) continue;
    if (found || number < 0 || number > kGreatestPosition) return std::nullopt;
    found = number;
  }
  return found;
}

std::optional<int64_t> DealOut(const std::vector<state::TaskId>& tasks, std::string& ledger) {
  const std::optional<int64_t> total = OnlyPosition(ledger);
  if (!total || tasks.size() < 2) return std::nullopt;
  const int64_t part = *total / static_cast<int64_t>(tasks.size());
  const std::string prefix = StrCat(kPosition, " ");
  std::string dealt;
  std::istringstream lines(ledger);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(prefix)) dealt += StrCat(line, "\n");
  }
  for (const state::TaskId& task : tasks) dealt += PositionRecord(task, part);
  ledger = std::move(dealt);
  return part;
}

}  // namespace tfjob::strategy
