#include "runtime/data/batch_maker.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>

#include "runtime/base/check.h"
#include "runtime/base/philox.h"
#include "runtime/data/convert.h"

namespace tfjob::data {

namespace {

// Writes one row of a column to its place in a batch.
void CopyRow(const ColumnValues& source, const std::byte* from, std::span<std::byte> to) {
  const Column& column = source.column;
  const DType stored = source.values.dtype();
  if (column.one_hot) {
    ENFORCE(stored == DType::kInt64, "class numbers, which the conversion has checked");
    const auto* classes = reinterpret_cast<const int64_t*>(from);
    auto* row = reinterpret_cast<float*>(to.data());
    std::fill_n(row, source.width * column.classes, 0.0f);
    for (int64_t i = 0; i < source.width; ++i) row[i * column.classes + classes[i]] = 1;
  } else if (stored == DType::kUInt8 && column.dtype == DType::kFloat32) {
    ScaleRow(reinterpret_cast<const uint8_t*>(from), source.width, column.scale,
             reinterpret_cast<float*>(to.data()));
  } else if (stored == DType::kFloat32 && column.scale != 1) {
    ScaleRow(reinterpret_cast<const float*>(from), source.width, column.scale,
             reinterpret_cast<float*>(to.data()));
  } else {
    std::memcpy(to.data(), from, to.size());
  }
}

}  // namespace

StatusOr<std::unique_ptr<Pipeline::Maker>> Pipeline::Maker::Create(
    std::shared_ptr<const Dataset> dataset, const PipelineOptions& options) {
  std::unique_ptr<Maker> maker(new Maker(std::move(dataset), options));
  RETURN_IF_ERROR(maker->Check());
  RETURN_IF_ERROR(maker->ReadColumns());
  return maker;
}

Pipeline::Maker::Maker(std::shared_ptr<const Dataset> dataset, const PipelineOptions& options)
    : dataset_(std::move(dataset)),
      options_(options),
      worker_(options.worker),
      workers_(options.workers),
      next_(options.start) {
  ENFORCE((options.batch_size > 0 || together()) && options.workers > 0,
          "sizes are checked where they are read");
  ENFORCE(options.worker >= 0 && options.worker < options.workers,
          "a worker is one of the workers");
  rows_ = together() ? dataset_->size()
                     : (dataset_->size() - options.worker + options.workers - 1) / options.workers;
  step_ = together() ? options.global_batch : options.batch_size;
  remainder_ = options.drop_remainder ? 0 : rows_ % step_;
  batches_ = rows_ / step_ + (remainder_ > 0 ? 1 : 0);
  full_ = {0, step_};
  rest_ = {0, remainder_};
  if (together()) TakePart(options.worker, options.workers);
  if (options.shuffle) order_.resize(static_cast<size_t>(dataset_->size()));
}

void Pipeline::Maker::TakePart(int64_t worker, int64_t workers) {
  ENFORCE(together() && worker >= 0 && worker < workers, "a part of global batches");
  worker_ = worker;
  workers_ = workers;
  full_ = PartOf(step_, worker, workers);
  rest_ = PartOf(remainder_, worker, workers);
}

Status Pipeline::Maker::Check() const {
  if (dataset_->size() > std::numeric_limits<uint32_t>::max()) {
    return InvalidArgument(dataset_->arrays.back().file, ": expected fewer than 2^32 rows, got ",
                           dataset_->size());
  }
  if (rows_ <= 0) {
    return InvalidArgument(dataset_->arrays.back().file, ": ", dataset_->size(),
                           " rows are not enough for ", options_.workers, " workers: worker ",
                           options_.worker, " would have none");
  }
  if (batches_ == 0) {
    return InvalidArgument(dataset_->arrays.back().file, ": the ", rows_, " rows",
                           together() ? std::string() : StrCat(" of worker ", options_.worker),
                           " do not fill one batch of ", step_,
                           ", and drop_remainder leaves out the rest; use smaller batches");
  }
  const Position& start = options_.start;
  if (start.epoch < 0 || start.batch < 0 || start.batch >= batches_) {
    return InvalidArgument("the saved position (epoch ", start.epoch, ", batch ", start.batch,
                           ") does not exist: ", dataset_->arrays.back().file, " has ", batches_,
                           " batches per epoch");
  }
  return OkStatus();
}

Status Pipeline::Maker::ReadColumns() {
  for (const Column& column : options_.columns) {
    ColumnValues source{.column = column};
    ASSIGN_OR_RETURN(source.values, ConvertColumn(*dataset_, column));
    source.width = source.values.num_elements() / dataset_->size();
    columns_.push_back(std::move(source));
  }
  return OkStatus();
}

Batch Pipeline::Maker::NewBatch(int64_t size) const {
  Batch batch;
  for (const Column& column : options_.columns) {
    std::vector<int64_t> dims = column.shape.dims();
    dims.insert(dims.begin(), size);
    batch.tensors.push_back({column.name, Tensor(column.dtype, Shape(std::move(dims)))});
  }
  return batch;
}

BatchSlot Pipeline::Maker::NewSlot() const {
  BatchSlot slot;
  if (rows_ >= step_) slot.full = NewBatch(full_.size);
  if (remainder_ > 0) slot.rest = NewBatch(rest_.size);
  return slot;
}

Position Pipeline::Maker::After(Position position) const {
  if (position.batch + 1 < batches_) return {position.epoch, position.batch + 1};
  return {position.epoch + 1, 0};
}

bool Pipeline::Maker::Fill(BatchSlot& slot) {
  if (options_.epochs > 0 && next_.epoch >= options_.epochs) return false;
  if (options_.shuffle && ordered_epoch_ != next_.epoch) Shuffle(next_.epoch);
  const bool rest = remainder_ > 0 && next_.batch == batches_ - 1;
  slot.filled = rest ? &slot.rest : &slot.full;
  slot.filled->position = next_;
  for (size_t i = 0; i < columns_.size(); ++i)
    Copy(columns_[i], next_.batch * step_ + (rest ? rest_ : full_).begin,
         slot.filled->tensors[i].value);
  next_ = After(next_);
  return true;
}

// Shuffles by the Fisher-Yates method. The order depends only on the seed and the epoch.
void Pipeline::Maker::Shuffle(int64_t epoch) {
  PhiloxStream random(
      PhiloxKey(PhiloxKey(options_.seed, "shuffle") + static_cast<uint64_t>(epoch), "epoch"));
  std::iota(order_.begin(), order_.end(), 0u);
  for (size_t i = order_.size(); i > 1; --i) {
    std::swap(order_[i - 1], order_[random.Below(static_cast<uint32_t>(i))]);
  }
  ordered_epoch_ = epoch;
}

int64_t Pipeline::Maker::Row(int64_t index) const {
  const int64_t place = together() ? index : options_.worker + index * options_.workers;
  return options_.shuffle ? order_[static_cast<size_t>(place)] : place;
}

void Pipeline::Maker::Copy(const ColumnValues& source, int64_t first, Tensor& tensor) const {
  const int64_t size = tensor.shape().dim(0);
  if (size == 0) return;
  const size_t from_bytes = static_cast<size_t>(source.width) * SizeOf(source.values.dtype());
  const size_t to_bytes = tensor.num_bytes() / static_cast<size_t>(size);
  const std::byte* base = source.values.bytes().data();
  std::byte* to = tensor.bytes().data();
  const auto at = [&](int64_t i) {
    return base + static_cast<size_t>(Row(first + i)) * from_bytes;
  };
  for (int64_t i = 0; i < size; ++i, to += to_bytes) {
    // Rows are scattered in memory, so the start of each is prefetched here. The hardware
    // prefetcher then follows the row from its first cache lines.
    if (i + 2 < size) __builtin_prefetch(at(i + 2));
    CopyRow(source, at(i), {to, to_bytes});
  }
}

}  // namespace tfjob::data
