#include "runtime/data/file_order.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "runtime/base/check.h"
#include "runtime/base/philox.h"
#include "runtime/base/status.h"
#include "runtime/data/part.h"

namespace tfjob::data {
namespace {

// Returns the files of each group, in ascending order. The largest file that is left always goes to
// the group that has the fewest examples so far.
std::vector<std::vector<size_t>> Divide(const std::vector<int64_t>& sizes, size_t groups) {
  std::vector<size_t> largest_first(sizes.size());
  std::iota(largest_first.begin(), largest_first.end(), size_t{0});
  std::ranges::stable_sort(largest_first, std::greater<>(), [&](size_t i) { return sizes[i]; });
  std::vector<std::vector<size_t>> files(groups);
  std::vector<int64_t> examples(groups);
  for (const size_t file : largest_first) {
    const auto group = static_cast<size_t>(std::ranges::min_element(examples) - examples.begin());
    files[group].push_back(file);
    examples[group] += sizes[file];
  }
  for (std::vector<size_t>& of : files) std::ranges::sort(of);
  return files;
}

}  // namespace

FileOrder::FileOrder(std::span<const int64_t> starts, int64_t size, const FileOrderOptions& options)
    : batch_(options.batch), groups_(static_cast<size_t>(options.groups)) {
  ENFORCE(options.groups >= 1 && options.batch >= options.groups && !starts.empty(),
          "each worker has a part of a batch");
  std::vector<int64_t> sizes;
  for (size_t i = 0; i < starts.size(); ++i)
    sizes.push_back((i + 1 < starts.size() ? starts[i + 1] : size) - starts[i]);
  const std::vector<std::vector<size_t>> files = Divide(sizes, groups_.size());
  batches_ = std::numeric_limits<int64_t>::max();
  for (size_t g = 0; g < groups_.size(); ++g) {
    Group& group = groups_[g];
    group.files = files[g];
    for (const size_t file : group.files) {
      group.starts.push_back(starts[file]);
      group.before.push_back(group.size);
      group.size += sizes[file];
    }
    group.part = PartOf(batch_, static_cast<int64_t>(g), options.groups).size;
    batches_ = std::min(batches_, group.size / group.part);
    if (group.size == 0) continue;
    const uint64_t seed = PhiloxKey(options.seed, StrCat("files of group ", g));
    group.order.emplace_back(options.kind, seed, group.size, options.window);
  }
  int64_t rest = 0;
  for (Group& group : groups_) {
    group.rest = rest;
    rest += group.size - batches_ * group.part;
  }
}

void FileOrder::Begin(int64_t epoch) {
  for (Group& group : groups_) {
    for (Order& order : group.order) order.Begin(epoch);
  }
}

int64_t FileOrder::At(int64_t place) {
  if (place < batches_ * batch_) {
    const int64_t batch = place / batch_, row = place % batch_;
    const auto count = static_cast<int64_t>(groups_.size());
    const int64_t least = batch_ / count, larger = batch_ % count;
    const int64_t in_larger = larger * (least + 1);
    const int64_t g = row < in_larger ? row / (least + 1) : larger + (row - in_larger) / least;
    const int64_t begin = PartOf(batch_, g, count).begin;
    Group& group = groups_[static_cast<size_t>(g)];
    return InGroup(group, batch * group.part + row - begin);
  }
  const int64_t rest = place - batches_ * batch_;
  // The last group whose first remaining example is at or before this place. Groups without
  // remaining examples are never the last such group.
  auto group = std::ranges::upper_bound(groups_, rest, {}, &Group::rest);
  --group;
  return InGroup(*group, batches_ * group->part + rest - group->rest);
}

int64_t FileOrder::InGroup(Group& group, int64_t index) {
  const int64_t row = group.order[0].At(index);
  const auto after = std::ranges::upper_bound(group.before, row);
  const auto file = static_cast<size_t>(after - group.before.begin()) - 1;
  return group.starts[file] + row - group.before[file];
}

}  // namespace tfjob::data
