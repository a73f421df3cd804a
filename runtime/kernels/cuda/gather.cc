// Implements the host's side of gather.cu.
#include <algorithm>
#include <utility>

#include "runtime/kernels/cpu/requests.h"
#include "runtime/kernels/cuda/families.h"
#include "runtime/kernels/cuda/parameters.h"

namespace tfjob::kernels::cuda {
namespace {

class GatherKernel final : public Kernel {
 public:
  GatherKernel(Launcher launcher, const KernelRequest& request)
      : launcher_(std::move(launcher)),
        table_(request.inputs[0]),
        ids_(request.inputs[1]),
        out_(request.outputs[0]),
        name_(request.attributes.Get("table", std::string())) {}

  void Run(const void* const* inputs, void* const* outputs, void*, Stream& stream) override {
    Check(inputs[1], stream);
    const auto size = static_cast<int64_t>(SizeOf(out_.dtype));
    const int64_t unit = HasQuads(inputs[0], outputs[0]) ? 16 : size;
    const int64_t cols = out_.cols() * size / unit;
    const GatherParameter p{.table = inputs[0],
                            .ids = inputs[1],
                            .out = outputs[0],
                            .table_stride = table_.row_stride * size / unit,
                            .out_stride = out_.row_stride * size / unit,
                            .rows = table_.shape.dim(0),
                            .count = static_cast<uint32_t>(out_.shape.dim(0) * cols),
                            .cols = static_cast<uint32_t>(cols),
                            .id_bytes = static_cast<int32_t>(SizeOf(ids_.dtype)),
                            .bytes = static_cast<int32_t>(unit)};
    Submit(launcher_, "Gather", {Blocks(p.count, kGatherThreads)}, {kGatherThreads}, p, stream);
  }

 private:
  // Submits a check of the ids, if the stream has a record of refusals. Each call registers a
  // function with the stream, which keeps it, so a kernel should be captured once and replayed.
  void Check(const void* ids, Stream& stream) const {
    const int64_t rows = table_.shape.dim(0), count = out_.shape.dim(0);
    if (stream.refusal() == nullptr || count == 0) return;
    const auto describe = [rows, name = name_](const Refusal& refusal) {
      return cpu::NoSuchRow(refusal.value, refusal.position, name, rows);
    };
    const CheckIdsParameter p{.ids = ids,
                              .refusal = RefusalOf(stream),
                              .number = stream.OnRefusal(describe),
                              .rows = rows,
                              .count = static_cast<uint32_t>(count),
                              .id_bytes = static_cast<int32_t>(SizeOf(ids_.dtype))};
    Submit(launcher_, "CheckIds", {1}, {kCheckThreads}, p, stream);
  }

  // Returns whether all rows can be copied in units of 16 aligned bytes.
  bool HasQuads(const void* table, const void* out) const {
    const auto size = static_cast<int64_t>(SizeOf(out_.dtype));
    const uintptr_t addresses =
        reinterpret_cast<uintptr_t>(table) | reinterpret_cast<uintptr_t>(out);
    return addresses % 16 == 0 && out_.cols() * size % 16 == 0 &&
           table_.row_stride * size % 16 == 0 && out_.row_stride * size % 16 == 0;
  }

  const Launcher launcher_;
  const Operand table_, ids_, out_;
  const std::string name_;
};

// Sums the rows of equal ids: sorts the ids, numbers the distinct ones, and sums their rows.
class GroupSums {
 public:
  // If `rows` is 0, writes the sum for the i-th distinct id to row i. Otherwise, writes the sum for
  // id k to row k, and ignores ids outside [0, rows).
  GroupSums(Launcher launcher, const Operand& ids, const Operand& values, const Operand& out,
            int64_t rows, FloatType type)
      : launcher_(std::move(launcher)),
        count_(static_cast<uint32_t>(values.shape.dim(0))),
        cols_(static_cast<uint32_t>(values.cols())),
        id_bytes_(static_cast<int32_t>(SizeOf(ids.dtype))),
        values_stride_(values.row_stride),
        out_stride_(out.row_stride),
        rows_(rows),
        type_(type) {
    const size_t count = count_, cells = Blocks(count_, kGroupPlaces) * size_t{cols_};
    for (int i = 0; i < 2; ++i) {
      ids_at_[i] = Take(count * sizeof(int64_t));
      positions_at_[i] = Take(count * sizeof(uint32_t));
    }
    numbers_at_ = Take(count * sizeof(uint32_t));
    distinct_count_at_ = Take(sizeof(uint32_t));
    begun_at_ = Take(cells * sizeof(float));
    continued_at_ = Take(cells * sizeof(float));
  }

  size_t workspace_bytes() const { return bytes_; }

  // Submits the kernels. `distinct` may be null.
  void Submit(const void* ids, const void* values, void* out, void* distinct, void* workspace,
              Stream& stream) const {
    auto* const space = static_cast<std::byte*>(workspace);
    const size_t sorted = SubmitSort(ids, space, stream);
    const NumberIdsParameter number{.ids = At<int64_t>(space, ids_at_[sorted]),
                                    .numbers = At<uint32_t>(space, numbers_at_),
                                    .distinct = static_cast<int64_t*>(distinct),
                                    .distinct_count = At<uint32_t>(space, distinct_count_at_),
                                    .count = count_};
    cuda::Submit(launcher_, "NumberIds", {1}, {kSortThreads}, number, stream);
    const SumGroupsParameter sum{.ids = number.ids,
                                 .positions = At<uint32_t>(space, positions_at_[sorted]),
                                 .numbers = number.numbers,
                                 .distinct_count = number.distinct_count,
                                 .values = values,
                                 .out = out,
                                 .begun = At<float>(space, begun_at_),
                                 .continued = At<float>(space, continued_at_),
                                 .values_stride = values_stride_,
                                 .out_stride = out_stride_,
                                 .rows = rows_,
                                 .count = count_,
                                 .cols = cols_,
                                 .type = type_};
    const Grid grid{Blocks(Blocks(count_, kGroupPlaces), kGroupWarps), Blocks(cols_, 32)};
    for (const char* const kernel : {"SumGroups", "JoinGroups"})
      cuda::Submit(launcher_, kernel, grid, {32, kGroupWarps}, sum, stream);
  }

 private:
  template <typename T>
  static T* At(std::byte* space, size_t offset) {
    return reinterpret_cast<T*>(space + offset);
  }

  // Reserves bytes of the workspace, and returns their offset.
  size_t Take(size_t bytes) {
    constexpr size_t kAlignment = 64;
    const size_t offset = bytes_;
    bytes_ += (bytes + kAlignment - 1) / kAlignment * kAlignment;
    return offset;
  }

  // Returns which of the two lists contains the sorted ids.
  size_t SubmitSort(const void* ids, std::byte* space, Stream& stream) const {
    const SortIdsParameter sort{.ids = ids,
                                .sorted = At<int64_t>(space, ids_at_[0]),
                                .positions = At<uint32_t>(space, positions_at_[0]),
                                .count = count_,
                                .id_bytes = id_bytes_};
    cuda::Submit(launcher_, "SortIds", {Blocks(count_, kSortThreads)}, {kSortThreads}, sort,
                 stream);
    size_t sorted = 0;
    for (int64_t part = kSortThreads; part < count_; part *= 2, sorted = 1 - sorted) {
      const MergeIdsParameter merge{
          .ids = At<int64_t>(space, ids_at_[sorted]),
          .positions = At<uint32_t>(space, positions_at_[sorted]),
          .merged = At<int64_t>(space, ids_at_[1 - sorted]),
          .merged_positions = At<uint32_t>(space, positions_at_[1 - sorted]),
          .count = count_,
          .part = part};
      cuda::Submit(launcher_, "MergeIds", {Blocks(count_, kMergeThreads)}, {kMergeThreads}, merge,
                   stream);
    }
    return sorted;
  }

  const Launcher launcher_;
  const uint32_t count_, cols_;
  const int32_t id_bytes_;
  const int64_t values_stride_, out_stride_, rows_;
  const FloatType type_;
  size_t bytes_ = 0;
  size_t ids_at_[2], positions_at_[2];
  size_t numbers_at_, distinct_count_at_, begun_at_, continued_at_;
};

class DeduplicateKernel final : public Kernel {
 public:
  explicit DeduplicateKernel(GroupSums sums) : sums_(std::move(sums)) {}

  size_t workspace_bytes() const override { return sums_.workspace_bytes(); }

  void Run(const void* const* inputs, void* const* outputs, void* workspace,
           Stream& stream) override {
    sums_.Submit(inputs[0], inputs[1], outputs[1], outputs[0], workspace, stream);
  }

 private:
  const GroupSums sums_;
};

// Clears the output, and writes the sums to it.
class SegmentSumKernel final : public Kernel {
 public:
  SegmentSumKernel(std::unique_ptr<Kernel> clear, GroupSums sums)
      : clear_(std::move(clear)), sums_(std::move(sums)) {}

  size_t workspace_bytes() const override { return sums_.workspace_bytes(); }

  void Run(const void* const* inputs, void* const* outputs, void* workspace,
           Stream& stream) override {
    clear_->Run(nullptr, outputs, nullptr, stream);
    sums_.Submit(inputs[1], inputs[0], outputs[0], nullptr, workspace, stream);
  }

 private:
  const std::unique_ptr<Kernel> clear_;
  const GroupSums sums_;
};

// Returns the type of the values and their sums. Returns Unimplemented if the columns need more
// blocks than CUDA allows along the second axis of a grid.
StatusOr<FloatType> ExpectSums(const Operand& values, const Operand& sums) {
  RETURN_IF_ERROR(CheckCount(values));
  constexpr int64_t kMostColumns = 65535 * 32;
  if (values.cols() <= kMostColumns) return FloatTypeOf({&values, &sums});
  return Unimplemented("the sum of rows of ", values.cols(), " elements");
}

Prepared PrepareGather(const Launcher& launcher, const KernelRequest& request) {
  RETURN_IF_ERROR(cpu::CheckGather(request));
  RETURN_IF_ERROR(CheckCount(request.outputs[0]));
  return std::make_unique<GatherKernel>(launcher, request);
}

Prepared PrepareDeduplicate(const Launcher& launcher, const KernelRequest& request) {
  RETURN_IF_ERROR(cpu::CheckDeduplicateIndexedSlices(request));
  const Operand &ids = request.inputs[0], &values = request.inputs[1];
  ASSIGN_OR_RETURN(const FloatType type, ExpectSums(values, request.outputs[1]));
  return std::make_unique<DeduplicateKernel>(
      GroupSums(launcher, ids, values, request.outputs[1], 0, type));
}

Prepared PrepareSegmentSum(const Launcher& launcher, const KernelRequest& request) {
  RETURN_IF_ERROR(cpu::CheckUnsortedSegmentSum(request));
  const Operand &values = request.inputs[0], &ids = request.inputs[1], &out = request.outputs[0];
  ASSIGN_OR_RETURN(const FloatType type, ExpectSums(values, out));
  ASSIGN_OR_RETURN(std::unique_ptr<Kernel> clear, PrepareFill(launcher, out, 0));
  if (values.shape.num_elements() == 0 || out.shape.num_elements() == 0) return clear;
  return std::make_unique<SegmentSumKernel>(
      std::move(clear), GroupSums(launcher, ids, values, out, out.shape.dim(0), type));
}

}  // namespace

KernelTable::Entries GatherKernels(const Launcher& launcher) {
  const auto with = [&launcher](auto prepare) -> KernelEntry {
    return {[launcher, prepare](const KernelRequest& r) { return prepare(launcher, r); }, {}};
  };
  return {{"Gather", with(PrepareGather)},
          {"DeduplicateIndexedSlices", with(PrepareDeduplicate)},
          {"UnsortedSegmentSum", with(PrepareSegmentSum)}};
}

}  // namespace tfjob::kernels::cuda
