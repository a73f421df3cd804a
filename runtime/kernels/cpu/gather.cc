// Implements ops that read rows of a table by index, or sum values into such rows.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <utility>

#include "runtime/kernels/cpu/families.h"
#include "runtime/kernels/cpu/prepare.h"
#include "runtime/kernels/cpu/requests.h"
#include "runtime/kernels/stream.h"

namespace tfjob::kernels::cpu {
namespace {

// The number of rows by which prefetching runs ahead of reading. Prefetching is needed because the
// next row may be anywhere in memory.
constexpr int64_t kPrefetchedRows = 8;
constexpr size_t kPrefetchedBytes = 256;  // per row; the hardware prefetches further bytes
constexpr size_t kCacheLine = 64;

// Returns the minimum number of rows that justifies waking another thread.
int64_t GrainOf(const Operand& matrix) {
  return 1 + kGrain / std::max<int64_t>(1, matrix.cols());
}

// Returns whether all ids are valid row indices of the table. If not, reports an error to the
// stream.
template <typename Id>
bool CheckIds(std::span<const Id> ids, int64_t rows, const std::string& table, Stream& stream) {
  const auto outside = [rows](Id id) { return id < 0 || id >= rows; };
  bool any = false;
  for (const Id id : ids) any |= outside(id);  // no branch, so that gcc vectorises the loop
  if (!any) return true;
  const auto position = std::ranges::find_if(ids, outside) - ids.begin();
  stream.Fail(NoSuchRow(ids[static_cast<size_t>(position)], position, table, rows));
  return false;
}

template <typename Id>
class Gather : public Kernel {
 public:
  explicit Gather(const KernelRequest& request)
      : table_(request.inputs[0]),
        out_(request.outputs[0]),
        name_(request.attributes.Get("table", std::string())),
        row_bytes_(static_cast<size_t>(out_.cols()) * SizeOf(out_.dtype)) {}

  void Run(const void* const* inputs, void* const* outputs, void*, Stream& stream) override {
    const int64_t count = out_.shape.dim(0);
    const auto* ids = static_cast<const Id*>(inputs[1]);
    if (!CheckIds<Id>({ids, static_cast<size_t>(count)}, table_.shape.dim(0), name_, stream))
      return;
    const auto* table = static_cast<const std::byte*>(inputs[0]);
    auto* out = static_cast<std::byte*>(outputs[0]);
    const size_t from = StrideOf(table_), to = StrideOf(out_);
    stream.ParallelFor(count, GrainOf(out_), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        if (i + kPrefetchedRows < end) {
          Prefetch(table + static_cast<size_t>(ids[i + kPrefetchedRows]) * from);
        }
        std::memcpy(out + static_cast<size_t>(i) * to, table + static_cast<size_t>(ids[i]) * from,
                    row_bytes_);
      }
    });
  }

 private:
  static size_t StrideOf(const Operand& matrix) {
    return static_cast<size_t>(matrix.row_stride) * SizeOf(matrix.dtype);
  }
  void Prefetch(const std::byte* row) const {
    const size_t bytes = std::min(row_bytes_, kPrefetchedBytes);
    for (size_t at = 0; at < bytes; at += kCacheLine) __builtin_prefetch(row + at);
  }

  const Operand table_, out_;
  const std::string name_;
  const size_t row_bytes_;
};

// Groups the positions of equal ids. The groups are ordered by id. The positions within a group are
// in ascending order, so that sums over a group do not depend on the number of threads.
class Groups {
 public:
  static size_t WorkspaceBytes(int64_t count) {
    return static_cast<size_t>(count) * (2 * sizeof(Place) + sizeof(int64_t)) + sizeof(int64_t);
  }

  // Groups `ids`, which must not be negative. `workspace` must outlive this object.
  template <typename Id>
  Groups(std::span<const Id> ids, void* workspace) {
    places_ = static_cast<Place*>(workspace);
    for (size_t i = 0; i < ids.size(); ++i) places_[i] = {ids[i], static_cast<int64_t>(i)};
    Sort(ids.size());
    begins_ = reinterpret_cast<int64_t*>(static_cast<Place*>(workspace) + 2 * ids.size());
    for (size_t i = 0; i < ids.size(); ++i) {
      if (i == 0 || places_[i].id != places_[i - 1].id) begins_[size_++] = static_cast<int64_t>(i);
    }
    begins_[size_] = static_cast<int64_t>(ids.size());
  }

  int64_t size() const { return size_; }
  int64_t id(int64_t group) const { return places_[begins_[group]].id; }

  // Sets `out` to the sum of those rows of `values` that belong to the group. The rows of `values`
  // start `stride` elements apart.
  template <typename T>
  void Sum(int64_t group, const T* values, int64_t stride, int64_t cols, T* out) const {
    int64_t place = begins_[group];
    std::copy_n(values + places_[place].position * stride, cols, out);
    while (++place < begins_[group + 1]) {
      const T* __restrict row = values + places_[place].position * stride;
      for (int64_t i = 0; i < cols; ++i) out[i] += row[i];
    }
  }

 private:
  struct Place {
    int64_t id;
    int64_t position;
  };
  static constexpr int kDigitBits = 11;

  // Sorts by id, with one stable pass per digit (radix sort).
  void Sort(size_t count) {
    uint64_t bits = 0;
    for (size_t i = 0; i < count; ++i) bits |= static_cast<uint64_t>(places_[i].id);
    Place* other = places_ + count;
    for (int shift = 0; shift < static_cast<int>(std::bit_width(bits)); shift += kDigitBits) {
      const auto digit = [shift](const Place& place) {
        return (static_cast<uint64_t>(place.id) >> shift) & ((uint64_t{1} << kDigitBits) - 1);
      };
      std::array<size_t, size_t{1} << kDigitBits> next{};
      for (size_t i = 0; i < count; ++i) ++next[digit(places_[i])];
      size_t before = 0;
      for (size_t& begin : next) before += std::exchange(begin, before);
      for (size_t i = 0; i < count; ++i) other[next[digit(places_[i])]++] = places_[i];
      std::swap(places_, other);
    }
  }

  Place* places_;
  int64_t* begins_;
  int64_t size_ = 0;
};

template <typename T, typename Id>
class DeduplicateIndexedSlices : public Kernel {
 public:
  explicit DeduplicateIndexedSlices(const KernelRequest& request)
      : values_(request.inputs[1]), out_(request.outputs[1]) {}

  size_t workspace_bytes() const override { return Groups::WorkspaceBytes(values_.shape.dim(0)); }

  void Run(const void* const* inputs, void* const* outputs, void* workspace,
           Stream& stream) override {
    const int64_t count = values_.shape.dim(0), cols = values_.cols();
    const std::span<const Id> ids(static_cast<const Id*>(inputs[0]), static_cast<size_t>(count));
    if (!CheckIds<Id>(ids, std::numeric_limits<Id>::max(), "", stream)) return;
    const Groups groups(ids, workspace);
    const auto* values = static_cast<const T*>(inputs[1]);
    auto* distinct = static_cast<int64_t*>(outputs[0]);
    auto* sums = static_cast<T*>(outputs[1]);
    stream.ParallelFor(count, GrainOf(values_), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        T* const sum = sums + i * out_.row_stride;
        const bool used = i < groups.size();
        distinct[i] = used ? groups.id(i) : -1;
        if (used) {
          groups.Sum(i, values, values_.row_stride, cols, sum);
        } else {
          std::fill_n(sum, cols, T{0});
        }
      }
    });
  }

 private:
  const Operand values_, out_;
};

template <typename T, typename Id>
class UnsortedSegmentSum : public Kernel {
 public:
  explicit UnsortedSegmentSum(const KernelRequest& request)
      : values_(request.inputs[0]), out_(request.outputs[0]) {}

  size_t workspace_bytes() const override { return Groups::WorkspaceBytes(values_.shape.dim(0)); }

  void Run(const void* const* inputs, void* const* outputs, void* workspace,
           Stream& stream) override {
    const std::span<const Id> ids(static_cast<const Id*>(inputs[1]),
                                  static_cast<size_t>(values_.shape.dim(0)));
    if (!CheckIds<Id>(ids, out_.shape.dim(0), "", stream)) return;
    const Groups groups(ids, workspace);
    const auto* values = static_cast<const T*>(inputs[0]);
    auto* out = static_cast<T*>(outputs[0]);
    const int64_t cols = out_.cols();
    stream.ParallelFor(out_.shape.dim(0), GrainOf(out_), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row)
        std::fill_n(out + row * out_.row_stride, cols, T{0});
    });
    stream.ParallelFor(groups.size(), GrainOf(out_), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        groups.Sum(i, values, values_.row_stride, cols, out + groups.id(i) * out_.row_stride);
      }
    });
  }

 private:
  const Operand values_, out_;
};

// Calls f(Type<T>()) for the type of the ids. `dtype` must be int32 or int64.
template <typename F>
Prepared ForId(DType dtype, F f) {
  return dtype == DType::kInt32 ? f(Type<int32_t>()) : f(Type<int64_t>());
}

Prepared PrepareGather(const KernelRequest& request) {
  RETURN_IF_ERROR(CheckGather(request));
  return ForId(request.inputs[1].dtype,
               [&]<typename Id>(Type<Id>) -> Prepared { return Make<Gather<Id>>(request); });
}

Prepared PrepareDeduplicateIndexedSlices(const KernelRequest& request) {
  RETURN_IF_ERROR(CheckDeduplicateIndexedSlices(request));
  return ForFloat(request.inputs[1].dtype, [&]<typename T>(Type<T>) -> Prepared {
    return ForId(request.inputs[0].dtype, [&]<typename Id>(Type<Id>) -> Prepared {
      return Make<DeduplicateIndexedSlices<T, Id>>(request);
    });
  });
}

Prepared PrepareUnsortedSegmentSum(const KernelRequest& request) {
  RETURN_IF_ERROR(CheckUnsortedSegmentSum(request));
  return ForFloat(request.inputs[0].dtype, [&]<typename T>(Type<T>) -> Prepared {
    return ForId(request.inputs[1].dtype, [&]<typename Id>(Type<Id>) -> Prepared {
      return Make<UnsortedSegmentSum<T, Id>>(request);
    });
  });
}

}  // namespace

KernelTable::Entries GatherKernels() {
  return {{"Gather", {PrepareGather, {}}},
          {"DeduplicateIndexedSlices", {PrepareDeduplicateIndexedSlices, {}}},
          {"UnsortedSegmentSum", {PrepareUnsortedSegmentSum, {}}}};
}

}  // namespace tfjob::kernels::cpu
