// Copies rows of tables, and sums the gradients of equal rows in an order that depends only on the
// ids.
#include "runtime/kernels/cuda/device.h"
#include "runtime/kernels/cuda/floats.h"
#include "runtime/kernels/cuda/parameters.h"

namespace tfjob::kernels::cuda {
namespace {

constexpr uint32_t kNoPosition = 0xffffffffu;

TFJOB_DEVICE int64_t IdAt(const void* ids, int bytes, uint32_t position) {
  if (bytes == 8) return static_cast<const int64_t*>(ids)[position];
  return static_cast<const int32_t*>(ids)[position];
}

TFJOB_DEVICE bool IsRow(int64_t id, int64_t rows) {
  return id >= 0 && id < rows;
}

TFJOB_DEVICE uint32_t Least(uint32_t a, uint32_t b) {
  return a < b ? a : b;
}

template <typename T>
TFJOB_DEVICE void CopyUnit(const GatherParameter& p, int64_t from, int64_t to, bool exists) {
  static_cast<T*>(p.out)[to] = exists ? static_cast<const T*>(p.table)[from] : static_cast<T>(0);
}

TFJOB_DEVICE void CopyQuad(const GatherParameter& p, int64_t from, int64_t to, bool exists) {
  float4 quad{0.0f, 0.0f, 0.0f, 0.0f};
  if (exists) quad = Load(static_cast<const float*>(p.table) + 4 * from);
  Store(static_cast<float*>(p.out) + 4 * to, quad);
}

struct Place {
  int64_t id;
  uint32_t position;
};

TFJOB_DEVICE bool IsBefore(const Place& a, const Place& b) {
  return a.id < b.id || (a.id == b.id && a.position < b.position);
}

// Returns the number of sorted ids that are below `id` or, if `equal` is set, at most `id`.
TFJOB_DEVICE int64_t CountBelow(const int64_t* ids, int64_t count, int64_t id, bool equal) {
  int64_t low = 0, high = count;
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    if (ids[middle] < id || (equal && ids[middle] == id)) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

// Returns the inclusive prefix sum of the threads' values. `sums` is in shared memory, and contains
// the prefix sums of all threads afterwards.
TFJOB_DEVICE uint32_t RunningSum(uint32_t value, uint32_t* sums) {
  for (unsigned distance = 1; distance < kSortThreads; distance *= 2) {
    sums[threadIdx.x] = value;
    __syncthreads();
    if (threadIdx.x >= distance) value += sums[threadIdx.x - distance];
    __syncthreads();
  }
  sums[threadIdx.x] = value;
  __syncthreads();
  return value;
}

// The part of the sorted list and the column that a thread sums.
struct GroupPart {
  uint32_t part, begin, end, col;
};

TFJOB_DEVICE GroupPart GroupPartOf(const SumGroupsParameter& p) {
  const uint32_t part = blockIdx.x * kGroupWarps + threadIdx.y;
  const uint32_t begin = part * kGroupPlaces, end = begin + kGroupPlaces;
  return {part, begin, end < p.count ? end : p.count, blockIdx.y * kWarp + threadIdx.x};
}

// Returns whether the first group of the part began in an earlier part.
TFJOB_DEVICE bool Continues(const SumGroupsParameter& p, uint32_t begin) {
  return begin > 0 && p.numbers[begin - 1] == p.numbers[begin];
}
// Returns whether the last group before `end` continues after it.
TFJOB_DEVICE bool GoesOn(const SumGroupsParameter& p, uint32_t end) {
  return end < p.count && p.numbers[end - 1] == p.numbers[end];
}

TFJOB_DEVICE float ValueAt(const SumGroupsParameter& p, uint32_t place, uint32_t col) {
  return ReadFloat(p.values, p.type, p.positions[place] * p.values_stride + col);
}

// Writes the sum of the group that contains the place.
TFJOB_DEVICE void WriteSum(const SumGroupsParameter& p, uint32_t place, uint32_t col, float sum) {
  const int64_t row = p.rows > 0 ? p.ids[place] : p.numbers[place];
  if (p.rows == 0 || IsRow(row, p.rows)) WriteFloat(p.out, p.type, row * p.out_stride + col, sum);
}

}  // namespace

TFJOB_KERNEL(CheckIds, CheckIdsParameter, kCheckThreads) {
  __shared__ uint32_t firsts[kCheckThreads / kWarp];
  uint32_t first = kNoPosition;
  for (uint32_t i = threadIdx.x; i < p.count; i += kCheckThreads)
    if (!IsRow(IdAt(p.ids, p.id_bytes, i), p.rows)) first = Least(first, i);
  for (int offset = kWarp / 2; offset > 0; offset /= 2)
    first = Least(first, __shfl_xor_sync(kAllLanes, first, offset));
  if (threadIdx.x % kWarp == 0) firsts[threadIdx.x / kWarp] = first;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (int warp = 1; warp < kCheckThreads / kWarp; ++warp) first = Least(first, firsts[warp]);
  if (first == kNoPosition || p.refusal[0] != 0) return;
  p.refusal[0] = p.number;
  p.refusal[1] = first;
  p.refusal[2] = IdAt(p.ids, p.id_bytes, first);
}

TFJOB_KERNEL(Gather, GatherParameter, kGatherThreads) {
  const uint32_t unit = blockIdx.x * kGatherThreads + threadIdx.x;
  if (unit >= p.count) return;
  const uint32_t row = unit / p.cols, col = unit - row * p.cols;
  const int64_t id = IdAt(p.ids, p.id_bytes, row);
  const bool exists = IsRow(id, p.rows);
  const int64_t from = exists ? id * p.table_stride + col : 0, to = row * p.out_stride + col;
  if (p.bytes == 1) return CopyUnit<uint8_t>(p, from, to, exists);
  if (p.bytes == 2) return CopyUnit<uint16_t>(p, from, to, exists);
  if (p.bytes == 4) return CopyUnit<uint32_t>(p, from, to, exists);
  if (p.bytes == 8) return CopyUnit<uint64_t>(p, from, to, exists);
  CopyQuad(p, from, to, exists);
}

// A bitonic sort (Batcher, "Sorting networks and their applications", 1968).
TFJOB_KERNEL(SortIds, SortIdsParameter, kSortThreads) {
  __shared__ int64_t ids[kSortThreads];
  __shared__ uint32_t positions[kSortThreads];
  const uint32_t i = blockIdx.x * kSortThreads + threadIdx.x;
  // Places past the end of the list have the largest id and the largest positions, so sorting
  // leaves them at the end.
  Place mine{i < p.count ? IdAt(p.ids, p.id_bytes, i) : INT64_MAX, i};
  for (unsigned size = 2; size <= kSortThreads; size *= 2) {
    for (unsigned distance = size / 2; distance > 0; distance /= 2) {
      ids[threadIdx.x] = mine.id;
      positions[threadIdx.x] = mine.position;
      __syncthreads();
      const unsigned partner = threadIdx.x ^ distance;
      const Place other{ids[partner], positions[partner]};
      const bool ascending = (threadIdx.x & size) == 0;
      const bool wants_lower = (threadIdx.x < partner) == ascending;
      if (IsBefore(other, mine) == wants_lower) mine = other;
      __syncthreads();
    }
  }
  if (i >= p.count) return;
  p.sorted[i] = mine.id;
  p.positions[i] = mine.position;
}

// The place of an id is its place in its own part plus the number of ids in the other part that
// precede it.
TFJOB_KERNEL(MergeIds, MergeIdsParameter, kMergeThreads) {
  const int64_t i = static_cast<int64_t>(blockIdx.x) * kMergeThreads + threadIdx.x;
  if (i >= p.count) return;
  const int64_t begin = i / (2 * p.part) * (2 * p.part), middle = begin + p.part;
  const int64_t end = middle + p.part < p.count ? middle + p.part : p.count;
  const int64_t id = p.ids[i];
  int64_t to = i;
  if (i >= middle) {
    to += CountBelow(p.ids + begin, p.part, id, true) - p.part;
  } else if (middle < end) {
    to += CountBelow(p.ids + middle, end - middle, id, false);
  }
  p.merged[to] = id;
  p.merged_positions[to] = p.positions[i];
}

TFJOB_KERNEL(NumberIds, NumberIdsParameter, kSortThreads) {
  __shared__ uint32_t sums[kSortThreads];
  __shared__ int64_t ids[kSortThreads];
  uint32_t before = 0;  // the number of distinct ids in earlier parts
  for (uint32_t first = 0; first < p.count; first += kSortThreads) {
    const uint32_t i = first + threadIdx.x;
    const int64_t id = i < p.count ? p.ids[i] : 0;
    ids[threadIdx.x] = id;
    __syncthreads();
    bool is_new = i == 0;
    if (i > 0 && i < p.count)
      is_new = (threadIdx.x > 0 ? ids[threadIdx.x - 1] : p.ids[i - 1]) != id;
    const uint32_t number = before + RunningSum(is_new ? 1 : 0, sums) - 1;
    before += sums[kSortThreads - 1];
    __syncthreads();
    if (i < p.count) p.numbers[i] = number;
    if (is_new && p.distinct != nullptr) p.distinct[number] = id;
  }
  if (threadIdx.x == 0) *p.distinct_count = before;
  if (p.distinct == nullptr) return;
  for (uint32_t i = threadIdx.x; i < p.count; i += kSortThreads)
    if (i >= before) p.distinct[i] = -1;
}

TFJOB_KERNEL(SumGroups, SumGroupsParameter, kWarp* kGroupWarps) {
  const GroupPart at = GroupPartOf(p);
  if (at.begin >= p.count || at.col >= p.cols) return;
  bool continues = Continues(p, at.begin);
  float sum = ValueAt(p, at.begin, at.col);
  for (uint32_t place = at.begin + 1; place < at.end; ++place) {
    const float value = ValueAt(p, place, at.col);
    if (p.numbers[place] == p.numbers[place - 1]) {
      sum += value;
      continue;
    }
    if (continues) {
      p.continued[static_cast<int64_t>(at.part) * p.cols + at.col] = sum;
    } else {
      WriteSum(p, place - 1, at.col, sum);
    }
    continues = false;
    sum = value;
  }
  if (continues) {
    p.continued[static_cast<int64_t>(at.part) * p.cols + at.col] = sum;
  } else if (GoesOn(p, at.end)) {
    p.begun[static_cast<int64_t>(at.part) * p.cols + at.col] = sum;
  } else {
    WriteSum(p, at.end - 1, at.col, sum);
  }
}

TFJOB_KERNEL(JoinGroups, SumGroupsParameter, kWarp* kGroupWarps) {
  const GroupPart at = GroupPartOf(p);
  if (at.begin >= p.count || at.col >= p.cols) return;
  // Sets the rows after the last sum to zero.
  for (uint32_t row = at.begin; row < at.end && p.rows == 0; ++row)
    if (row >= *p.distinct_count)
      WriteFloat(p.out, p.type, static_cast<int64_t>(row) * p.out_stride + at.col, 0.0f);
  const uint32_t number = p.numbers[at.end - 1];
  const bool begins = !(Continues(p, at.begin) && p.numbers[at.begin] == number);
  if (!begins || !GoesOn(p, at.end)) return;
  float sum = p.begun[static_cast<int64_t>(at.part) * p.cols + at.col];
  uint32_t end = at.end;
  for (uint32_t part = at.part + 1; end < p.count && p.numbers[end] == number; ++part) {
    sum += p.continued[static_cast<int64_t>(part) * p.cols + at.col];
    end = end + kGroupPlaces < p.count ? end + kGroupPlaces : p.count;
  }
  WriteSum(p, at.end - 1, at.col, sum);
}

TFJOB_KERNEL(IndexRows, IndexRowsParameter, kIndexThreads) {
  const uint32_t i = blockIdx.x * kIndexThreads + threadIdx.x;
  if (i >= p.count) return;
  const int64_t row = p.rows[i];
  if (IsRow(row, p.index_count)) p.index[row] = static_cast<int32_t>(i);
}

}  // namespace tfjob::kernels::cuda
