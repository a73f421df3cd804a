#include "runtime/ps/placement.h"

#include <algorithm>
#include <charconv>
#include <numeric>

namespace tfjob::ps {
namespace {

// Describes how a variable is split into `count` shards, each of which consists of whole rows. A
// row is a row of the variable, a single element (if a row of the variable is too large), or the
// whole variable (if it is not split).
struct Cut {
  int64_t row_bytes = 0;
  int64_t rows = 0;
  int64_t count = 1;
};

Cut CutOf(const state::Variable& variable, int64_t max_shard_bytes) {
  const auto element = static_cast<int64_t>(SizeOf(variable.dtype));
  const int64_t bytes = variable.shape.num_elements() * element;
  const bool whole = optimizer::SpansRows(variable.constraint, variable.shape);
  if (whole || bytes <= max_shard_bytes) return {.row_bytes = bytes, .rows = 1, .count = 1};
  // A row that exceeds the limit is split between elements, unless a constraint needs its norm.
  int64_t row_bytes = variable.shape.rank() == 0 ? element : bytes / variable.shape.dim(0);
  if (row_bytes > max_shard_bytes && !variable.constraint.has_norms()) row_bytes = element;
  const int64_t rows = bytes / row_bytes;
  const int64_t most_rows = std::max<int64_t>(1, max_shard_bytes / row_bytes);
  // Split into as few shards as possible, with sizes as equal as whole rows permit.
  return {.row_bytes = row_bytes, .rows = rows, .count = (rows + most_rows - 1) / most_rows};
}

void AppendShards(const Definition& definition, int index, std::vector<Shard>& shards) {
  const state::Variable& variable = definition.state.variables[static_cast<size_t>(index)];
  const auto [row_bytes, rows, count] = CutOf(variable, definition.max_shard_bytes);
  for (int64_t i = 0; i < count; ++i) {
    const int64_t begin = rows * i / count, end = rows * (i + 1) / count;
    shards.push_back(
        {.variable = index, .offset = begin * row_bytes, .size = (end - begin) * row_bytes});
  }
}

void Balance(int servers, std::vector<Shard>& shards) {
  std::vector<size_t> order(shards.size());
  std::iota(order.begin(), order.end(), size_t{0});
  // Every task must compute the same placement, so the sort is stable, and min_element returns the
  // first minimum.
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return shards[a].size > shards[b].size; });
  std::vector<int64_t> load(static_cast<size_t>(servers), 0);
  for (size_t i : order) {
    auto least = std::min_element(load.begin(), load.end());
    *least += shards[i].size;
    shards[i].server = static_cast<int>(least - load.begin());
  }
}

// Returns whether `line` starts with the index of a shard that is on another server or does not
// exist.
bool IsOfAnother(std::string_view line, const std::vector<Shard>& shards, int server) {
  int64_t shard = 0;
  const auto read = std::from_chars(line.data(), line.data() + line.size(), shard);
  if (read.ec != std::errc() || shard < 0) return false;
  const auto place = static_cast<size_t>(shard);
  return place >= shards.size() || shards[place].server != server;
}

}  // namespace

int64_t ShardCount(const state::Variable& variable, int64_t max_shard_bytes) {
  return CutOf(variable, max_shard_bytes).count;
}

Shape ShapeOf(const state::Variable& variable, const Shard& shard) {
  const auto element = static_cast<int64_t>(SizeOf(variable.dtype));
  if (!variable.constraint.has_norms()) return {shard.size / element};
  if (shard.size == variable.shape.num_elements() * element) return variable.shape;
  std::vector<int64_t> dims = variable.shape.dims();
  dims[0] = shard.size / (variable.shape.num_elements() * element / dims[0]);
  return Shape(std::move(dims));
}

std::vector<Shard> Place(const Definition& definition, int servers) {
  std::vector<Shard> shards;
  for (int i = 0; i < static_cast<int>(definition.state.variables.size()); ++i) {
    AppendShards(definition, i, shards);
  }
  if (definition.placement == Placement::kBalanced) {
    Balance(servers, shards);
  } else {
    int next = 0;
    for (Shard& shard : shards) shard.server = next++ % servers;
  }
  return shards;
}

std::string LedgerOf(std::string_view ledger, const std::vector<Shard>& shards, int server) {
  std::string own;
  while (!ledger.empty()) {
    const std::string_view line = ledger.substr(0, ledger.find('\n'));
    if (!IsOfAnother(line, shards, server)) own.append(line).append("\n");
    ledger.remove_prefix(std::min(line.size() + 1, ledger.size()));
  }
  return own;
}

}  // namespace tfjob::ps
