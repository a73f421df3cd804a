#include "runtime/data/batch_maker.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "runtime/base/philox.h"
#include "runtime/data/convert.h"

namespace tfjob::data {

StatusOr<std::unique_ptr<Pipeline::Maker>> Pipeline::Maker::Create(
    std::shared_ptr<const Dataset> dataset, const PipelineOptions& options) {
  std::unique_ptr<Maker> maker(new Maker(std::move(dataset), options));
  RETURN_IF_ERROR(maker->Check());
  RETURN_IF_ERROR(maker->ReadLabels());
  return maker;
}

Pipeline::Maker::Maker(std::shared_ptr<const Dataset> dataset, const PipelineOptions& options)
    : dataset_(std::move(dataset)), options_(options), next_(options.start) {
  ENFORCE(options.batch_size > 0 && options.workers > 0, "sizes are checked where they are read");
  ENFORCE(options.worker >= 0 && options.worker < options.workers,
          "a worker is one of the workers");
  rows_ = (dataset_->size() - options.worker + options.workers - 1) / options.workers;
  remainder_ = options.drop_remainder ? 0 : rows_ % options.batch_size;
  batches_ = rows_ / options.batch_size + (remainder_ > 0 ? 1 : 0);
  if (options.shuffle) order_.resize(static_cast<size_t>(dataset_->size()));
}

Status Pipeline::Maker::Check() const {
  if (dataset_->size() > std::numeric_limits<uint32_t>::max()) {
    return InvalidArgument(dataset_->labels_name, ": expected fewer than 2^32 rows, got ",
                           dataset_->size());
  }
  if (rows_ <= 0) {
    return InvalidArgument(dataset_->labels_name, ": ", dataset_->size(),
                           " rows are not enough for ", options_.workers, " workers: worker ",
                           options_.worker, " would have none");
  }
  if (batches_ == 0) {
    return InvalidArgument(dataset_->labels_name, ": the ", rows_, " rows of worker ",
                           options_.worker, " do not fill one batch of ", options_.batch_size,
                           ", and drop_remainder leaves out the rest; use smaller batches");
  }
  const Position& start = options_.start;
  if (start.epoch < 0 || start.batch < 0 || start.batch >= batches_) {
    return InvalidArgument("the saved position (epoch ", start.epoch, ", batch ", start.batch,
                           ") does not exist: ", dataset_->labels_name, " has ", batches_,
                           " batches per epoch");
  }
  return OkStatus();
}

Status Pipeline::Maker::ReadLabels() {
  const Tensor& labels = dataset_->labels;
  const bool values = options_.label_kind == LabelKind::kValue;
  for (size_t i = 0; i < static_cast<size_t>(dataset_->size()); ++i) {
    const double label =
        labels.dtype() == DType::kUInt8 ? labels.data<uint8_t>()[i] : labels.data<double>()[i];
    if (values) {
      values_.push_back(static_cast<float>(label));
      continue;
    }
    const double limit = static_cast<double>(options_.classes);
    if (!(label >= 0 && label < limit && std::floor(label) == label)) {
      return InvalidArgument(dataset_->labels_name, ": ", dataset_->row_name, " ",
                             dataset_->first_row + static_cast<int64_t>(i), ": label ", label,
                             " is out of range; expected an integer from 0 to ",
                             options_.classes - 1, ", since the model has ", options_.classes,
                             " outputs");
    }
    classes_.push_back(static_cast<int64_t>(label));
  }
  return OkStatus();
}

Batch Pipeline::Maker::NewBatch(int64_t size) const {
  std::vector<int64_t> dims = dataset_->features.shape().dims();
  dims[0] = size;
  Batch batch{.features = Tensor(DType::kFloat32, Shape(dims))};
  switch (options_.label_kind) {
    case LabelKind::kClass:
      batch.labels = Tensor(DType::kInt64, {size});
      break;
    case LabelKind::kOneHot:
      batch.labels = Tensor(DType::kFloat32, {size, options_.classes});
      break;
    case LabelKind::kValue:
      batch.labels = Tensor(DType::kFloat32, {size});
      break;
  }
  return batch;
}

BatchSlot Pipeline::Maker::NewSlot() const {
  BatchSlot slot;
  if (rows_ >= options_.batch_size) slot.full = NewBatch(options_.batch_size);
  if (remainder_ > 0) slot.rest = NewBatch(remainder_);
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
  CopyFeatures(next_.batch * options_.batch_size, *slot.filled);
  CopyLabels(next_.batch * options_.batch_size, *slot.filled);
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
  const int64_t place = options_.worker + index * options_.workers;
  return options_.shuffle ? order_[static_cast<size_t>(place)] : place;
}

void Pipeline::Maker::CopyFeatures(int64_t first, Batch& batch) const {
  const Tensor& all = dataset_->features;
  const int64_t width = all.num_elements() / dataset_->size();
  float* to = batch.features.data<float>().data();
  const int64_t size = batch.size();
  const bool bytes = all.dtype() == DType::kUInt8;
  const size_t element = SizeOf(all.dtype());
  const std::byte* base = all.bytes().data();
  const auto at = [&](int64_t i) {
    return base + static_cast<size_t>(Row(first + i) * width) * element;
  };
  for (int64_t i = 0; i < size; ++i, to += width) {
    // Rows are scattered in memory, so the start of each is prefetched here. The hardware
    // prefetcher then follows the row from its first cache lines.
    if (i + 2 < size) __builtin_prefetch(at(i + 2));
    const std::byte* from = at(i);
    if (bytes) {
      ScaleRow(reinterpret_cast<const uint8_t*>(from), width, options_.scale, to);
    } else {
      ScaleRow(reinterpret_cast<const float*>(from), width, options_.scale, to);
    }
  }
}

void Pipeline::Maker::CopyLabels(int64_t first, Batch& batch) const {
  const size_t size = static_cast<size_t>(batch.size());
  const auto row = [&](size_t i) {
    return static_cast<size_t>(Row(first + static_cast<int64_t>(i)));
  };
  switch (options_.label_kind) {
    case LabelKind::kClass:
      for (size_t i = 0; i < size; ++i) batch.labels.data<int64_t>()[i] = classes_[row(i)];
      break;
    case LabelKind::kValue:
      for (size_t i = 0; i < size; ++i) batch.labels.data<float>()[i] = values_[row(i)];
      break;
    case LabelKind::kOneHot: {
      auto to = batch.labels.data<float>();
      std::fill(to.begin(), to.end(), 0.0f);
      for (size_t i = 0; i < size; ++i) {
        to[i * static_cast<size_t>(options_.classes) + static_cast<size_t>(classes_[row(i)])] = 1;
      }
      break;
    }
  }
}

}  // namespace tfjob::data
