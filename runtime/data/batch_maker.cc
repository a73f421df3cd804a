#include "runtime/data/batch_maker.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/base/philox.h"

namespace tfjob::data {
namespace {

Order::Kind OrderOf(const Source& source, const PipelineOptions& options) {
  if (!options.shuffle) return Order::Kind::kFiles;
  if (options.shuffle_buffer > 0 && options.shuffle_buffer < source.size())
    return Order::Kind::kWindows;
  const int64_t most = std::max(options.most_listed, source.rows_in_memory());
  const bool listed =
      source.size() <= std::min<int64_t>(most, std::numeric_limits<uint32_t>::max());
  return listed ? Order::Kind::kList : Order::Kind::kPermutation;
}

// Copies the beginning of each row of `whole` to the rows of `cut`.
void CopyBeginnings(const Tensor& whole, Tensor& cut) {
  const auto rows = static_cast<size_t>(cut.shape().dim(0));
  const size_t from = whole.num_bytes() / rows, to = cut.num_bytes() / rows;
  for (size_t row = 0; row < rows; ++row) {
    std::ranges::copy(whole.bytes().subspan(row * from, to), cut.bytes().subspan(row * to).begin());
  }
}

}  // namespace

StatusOr<std::unique_ptr<Pipeline::Maker>> Pipeline::Maker::Create(
    std::shared_ptr<const Source> source, const PipelineOptions& options) {
  std::unique_ptr<Maker> maker(new Maker(std::move(source), options));
  RETURN_IF_ERROR(maker->Check());
  ASSIGN_OR_RETURN(maker->reader_, maker->source_->Open(options.columns));
  maker->MakeOrder();
  return maker;
}

void Pipeline::Maker::MakeOrder() {
  if (bucketed_ != nullptr) return;
  order_kind_ = OrderOf(*source_, options_);
  const int64_t window = std::max<int64_t>(options_.shuffle_buffer, 1);
  if (options_.sharding == Sharding::kFile) {
    file_order_ = std::make_unique<FileOrder>(
        source_->file_starts(), source_->size(),
        FileOrderOptions{.kind = order_kind_,
                         .seed = options_.seed,
                         .window = window,
                         .groups = file_groups(),
                         .batch = together() ? options_.global_batch : file_groups()});
  } else {
    order_ = std::make_unique<Order>(order_kind_, seed(), source_->size(), window);
  }
}

// The first worker has the order that a single worker would have.
uint64_t Pipeline::Maker::seed() const {
  return own() && worker_ > 0 ? PhiloxKey(options_.seed, StrCat("replica ", worker_))
                              : options_.seed;
}

Pipeline::Maker::Maker(std::shared_ptr<const Source> source, const PipelineOptions& options)
    : source_(std::move(source)),
      options_(options),
      worker_(options.worker),
      workers_(options.workers),
      next_(options.start) {
  ENFORCE((options.batch_size > 0 || together()) && options.workers > 0,
          "sizes are checked where they are read");
  ENFORCE(options.worker >= 0 && options.worker < options.workers,
          "a worker is one of the workers");
  SetRows();
  if (source_->buckets() != nullptr) SetBucketShapes();
  SetShapes();
}

void Pipeline::Maker::SetRows() {
  rows_ = together() || own()
              ? source_->size()
              : (source_->size() - options_.worker + options_.workers - 1) / options_.workers;
  step_ = together() ? options_.global_batch : options_.batch_size;
  if (together() && own())
    step_ = std::max<int64_t>(1, PartOf(options_.global_batch, worker_, workers_).size);
  remainder_ = options_.drop_remainder ? 0 : rows_ % step_;
  batches_ = rows_ / step_ + (remainder_ > 0 ? 1 : 0);
}

// Groups the examples into batches, each from a single bucket, and counts this worker's batches.
void Pipeline::Maker::SetBucketShapes() {
  const Buckets& buckets = *source_->buckets();
  ENFORCE(options_.bucket_batches.size() == buckets.count() && options_.shuffle_buffer == 0,
          "every bucket has a batch size");
  bucketed_ = std::make_unique<BucketBatches>(
      buckets, options_.bucket_batches,
      BucketBatchOptions{.shuffle = options_.shuffle,
                         .drop_remainder = options_.drop_remainder,
                         .seed = seed(),
                         .most_listed = std::max(options_.most_listed, source_->rows_in_memory())});
  batches_ = together() || own()
                 ? bucketed_->size()
                 : (bucketed_->size() - options_.worker + options_.workers - 1) / options_.workers;
}

void Pipeline::Maker::SetShapes() {
  shapes_.clear();
  if (bucketed_ == nullptr) {
    shapes_ = {{.rows = rows_ >= step_ ? step_ : 0}, {.rows = remainder_}};
  } else {
    const Buckets& buckets = *source_->buckets();
    for (size_t i = 0; i < buckets.count(); ++i) {
      const int64_t size = options_.bucket_batches[i], length = buckets.lengths()[i];
      const int64_t rest = options_.drop_remainder ? 0 : buckets.size(i) % size;
      shapes_.push_back({.rows = buckets.size(i) >= size ? size : 0, .length = length});
      shapes_.push_back({.rows = rest, .length = length});
    }
  }
  for (BatchShape& shape : shapes_)
    shape.part = together() && !own() ? PartOf(shape.rows, worker_, workers_) : Part{0, shape.rows};
  if (bucketed_ != nullptr) Stage();
}

void Pipeline::Maker::TakePart(int64_t worker, int64_t workers) {
  ENFORCE(together() && worker >= 0 && worker < workers, "a part of global batches");
  worker_ = worker;
  workers_ = workers;
  if (own()) {
    SetRows();
    MakeOrder();
  }
  SetShapes();
}

Status Pipeline::Maker::CheckFiles() const {
  const std::string& file = source_->fields().back().file;
  const std::vector<int64_t> starts = source_->file_starts();
  if (starts.empty()) {
    return InvalidArgument(file, ": the order of these examples is not that of whole files, so ",
                           "tasks cannot share them by file; set data.shard: data");
  }
  int64_t files = starts.back() < source_->size() ? 1 : 0;
  for (size_t i = 1; i < starts.size(); ++i) files += starts[i - 1] < starts[i] ? 1 : 0;
  if (files < file_groups()) {
    return InvalidArgument(file, ": ", files, files == 1 ? " file" : " files", " with examples ",
                           files == 1 ? "is" : "are", " not enough for ", file_groups(),
                           " tasks that read whole files; write the examples to more files, or ",
                           "set data.shard: data");
  }
  if (!together() || options_.global_batch >= file_groups()) return OkStatus();
  return InvalidArgument(file, ": batches of ", options_.global_batch,
                         " examples are not enough for ", file_groups(), " tasks");
}

Status Pipeline::Maker::CheckBuckets() const {
  if (batches_ > 0) return OkStatus();
  return InvalidArgument(source_->fields().back().file, ": ", bucketed_->size(),
                         " batches per epoch are not enough for ", options_.workers,
                         " workers: worker ", options_.worker, " would have none; use fewer ",
                         "buckets or smaller batches");
}

Status Pipeline::Maker::Check() const {
  const std::string& file = source_->fields().back().file;
  if (options_.shuffle && !source_->random_access()) {
    return InvalidArgument(file,
                           ": the examples can only be read in their order, so they cannot be ",
                           "shuffled; do not shuffle them, or cache them");
  }
  if (rows_ <= 0) {
    return InvalidArgument(file, ": ", source_->size(), " rows are not enough for ",
                           options_.workers, " workers: worker ", options_.worker,
                           " would have none");
  }
  if (bucketed_ != nullptr) RETURN_IF_ERROR(CheckBuckets());
  if (options_.sharding == Sharding::kFile) RETURN_IF_ERROR(CheckFiles());
  if (batches_ == 0) {
    return InvalidArgument(file, ": the ", rows_, " rows",
                           together() ? std::string() : StrCat(" of worker ", options_.worker),
                           " do not fill one batch of ", step_,
                           ", and drop_remainder leaves out the rest; use smaller batches");
  }
  const Position& start = options_.start;
  if (start.epoch < 0 || start.batch < 0 || start.batch >= batches_) {
    return InvalidArgument("the saved position (epoch ", start.epoch, ", batch ", start.batch,
                           ") does not exist: ", file, " has ", batches_, " batches per epoch");
  }
  return OkStatus();
}

bool Pipeline::Maker::Cuts(const Column& column, size_t shape) const {
  const int64_t length = shapes_[shape].length;
  return length > 0 && column.by_length && length < column.shape.dim(0);
}

Tensor Pipeline::Maker::NewTensor(const Column& column, const BatchShape& shape, bool cut) const {
  std::vector<int64_t> dims = column.shape.dims();
  if (cut) dims[0] = shape.length;
  dims.insert(dims.begin(), shape.part.size);
  return Tensor(column.dtype, Shape(std::move(dims)));
}

// Lets the tensors of each column share the memory of the largest one, across all batches.
void Pipeline::Maker::ShareMemory(std::vector<Batch>& batches) const {
  for (size_t i = 0; i < options_.columns.size(); ++i) {
    size_t most = 0;
    for (const Batch& batch : batches) {
      if (!batch.tensors.empty()) most = std::max(most, batch.tensors[i].value.num_bytes());
    }
    const auto whole = std::make_shared<Buffer>(most);
    for (Batch& batch : batches) {
      if (batch.tensors.empty()) continue;
      Tensor& value = batch.tensors[i].value;
      value = Tensor(
          value.dtype(), value.shape(),
          std::make_shared<Buffer>(std::shared_ptr<void>(whole, whole->data()), value.num_bytes()));
    }
  }
}

// Creates the tensors for the full-length values of the columns that batches truncate.
void Pipeline::Maker::Stage() {
  std::vector<Batch> batches(shapes_.size());
  for (size_t s = 0; s < shapes_.size(); ++s) {
    for (const Column& column : options_.columns) {
      const BatchShape shape = Cuts(column, s) ? shapes_[s] : BatchShape{};
      batches[s].tensors.push_back({column.name, NewTensor(column, shape, /*cut=*/false)});
    }
  }
  ShareMemory(batches);
  staged_.clear();
  for (Batch& batch : batches) staged_.push_back(std::move(batch.tensors));
}

BatchSlot Pipeline::Maker::NewSlot() {
  BatchSlot slot;
  slot.batches.resize(shapes_.size());
  for (size_t s = 0; s < shapes_.size(); ++s) {
    const BatchShape& shape = shapes_[s];
    if (shape.rows == 0) continue;
    batch_rows_.reserve(static_cast<size_t>(shape.part.size));
    for (const Column& column : options_.columns)
      slot.batches[s].tensors.push_back({column.name, NewTensor(column, shape, Cuts(column, s))});
  }
  if (bucketed_ != nullptr) ShareMemory(slot.batches);
  return slot;
}

Position Pipeline::Maker::After(Position position) const {
  if (position.batch + 1 < batches_) return {position.epoch, position.batch + 1};
  return {position.epoch + 1, 0};
}

Pipeline::Maker::Draw Pipeline::Maker::DrawOf(int64_t batch) {
  if (bucketed_ == nullptr) {
    const bool rest = remainder_ > 0 && batch == batches_ - 1;
    return {.shape = rest ? size_t{1} : 0, .begin = batch * step_};
  }
  const BucketBatches::Planned& planned =
      bucketed_->At(together() || own() ? batch : options_.worker + batch * options_.workers);
  const bool full = planned.rows == options_.bucket_batches[planned.bucket];
  return {.shape = 2 * planned.bucket + (full ? 0 : 1),
          .bucket = planned.bucket,
          .begin = planned.begin};
}

StatusOr<bool> Pipeline::Maker::Fill(BatchSlot& slot) {
  if (options_.epochs > 0 && next_.epoch >= options_.epochs) return false;
  reader_->BeginEpoch(next_.epoch);
  if (bucketed_ != nullptr) bucketed_->Begin(next_.epoch);
  if (order_ != nullptr) order_->Begin(next_.epoch);
  if (file_order_ != nullptr) file_order_->Begin(next_.epoch);
  const Draw draw = DrawOf(next_.batch);
  const Part& part = shapes_[draw.shape].part;
  slot.filled = &slot.batches[draw.shape];
  slot.filled->position = next_;
  batch_rows_.clear();
  for (int64_t i = 0; i < part.size; ++i) {
    const int64_t index = draw.begin + part.begin + i;
    batch_rows_.push_back(bucketed_ != nullptr ? bucketed_->Row(draw.bucket, index) : Row(index));
  }
  if (part.size > 0) RETURN_IF_ERROR(Read(draw.shape, *slot.filled));
  next_ = After(next_);
  return true;
}

// Reads the examples in batch_rows_ into the batch.
Status Pipeline::Maker::Read(size_t shape, Batch& batch) {
  const std::vector<Column>& columns = options_.columns;
  const auto cuts = [&](const Column& column) { return Cuts(column, shape); };
  if (std::ranges::none_of(columns, cuts)) return reader_->Read(batch_rows_, batch.tensors);
  std::vector<NamedTensor>& whole = staged_[shape];
  for (size_t i = 0; i < columns.size(); ++i) {
    if (!cuts(columns[i])) whole[i].value = batch.tensors[i].value;
  }
  RETURN_IF_ERROR(reader_->Read(batch_rows_, whole));
  for (size_t i = 0; i < columns.size(); ++i) {
    if (cuts(columns[i])) CopyBeginnings(whole[i].value, batch.tensors[i].value);
  }
  return OkStatus();
}

int64_t Pipeline::Maker::Row(int64_t index) const {
  const int64_t place = together() || own() ? index : options_.worker + index * options_.workers;
  return file_order_ != nullptr ? file_order_->At(place) : order_->At(place);
}

}  // namespace tfjob::data
