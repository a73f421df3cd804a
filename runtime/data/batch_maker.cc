#include "runtime/data/batch_maker.h"

#include <algorithm>
#include <limits>

#include "runtime/base/check.h"

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

}  // namespace

StatusOr<std::unique_ptr<Pipeline::Maker>> Pipeline::Maker::Create(
    std::shared_ptr<const Source> source, const PipelineOptions& options) {
  std::unique_ptr<Maker> maker(new Maker(std::move(source), options));
  RETURN_IF_ERROR(maker->Check());
  ASSIGN_OR_RETURN(maker->reader_, maker->source_->Open(options.columns));
  maker->order_ =
      std::make_unique<Order>(OrderOf(*maker->source_, options), options.seed,
                              maker->source_->size(), std::max<int64_t>(options.shuffle_buffer, 1));
  return maker;
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
  rows_ = together() ? source_->size()
                     : (source_->size() - options.worker + options.workers - 1) / options.workers;
  step_ = together() ? options.global_batch : options.batch_size;
  remainder_ = options.drop_remainder ? 0 : rows_ % step_;
  batches_ = rows_ / step_ + (remainder_ > 0 ? 1 : 0);
  full_ = {0, step_};
  rest_ = {0, remainder_};
  if (together()) TakePart(options.worker, options.workers);
}

void Pipeline::Maker::TakePart(int64_t worker, int64_t workers) {
  ENFORCE(together() && worker >= 0 && worker < workers, "a part of global batches");
  worker_ = worker;
  workers_ = workers;
  full_ = PartOf(step_, worker, workers);
  rest_ = PartOf(remainder_, worker, workers);
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

Batch Pipeline::Maker::NewBatch(int64_t size) const {
  Batch batch;
  for (const Column& column : options_.columns) {
    std::vector<int64_t> dims = column.shape.dims();
    dims.insert(dims.begin(), size);
    batch.tensors.push_back({column.name, Tensor(column.dtype, Shape(std::move(dims)))});
  }
  return batch;
}

BatchSlot Pipeline::Maker::NewSlot() {
  BatchSlot slot;
  batch_rows_.reserve(static_cast<size_t>(std::min(full_.size, rows_)));
  if (rows_ >= step_) slot.full = NewBatch(full_.size);
  if (remainder_ > 0) slot.rest = NewBatch(rest_.size);
  return slot;
}

Position Pipeline::Maker::After(Position position) const {
  if (position.batch + 1 < batches_) return {position.epoch, position.batch + 1};
  return {position.epoch + 1, 0};
}

StatusOr<bool> Pipeline::Maker::Fill(BatchSlot& slot) {
  if (options_.epochs > 0 && next_.epoch >= options_.epochs) return false;
  order_->Begin(next_.epoch);
  const bool rest = remainder_ > 0 && next_.batch == batches_ - 1;
  const Part& part = rest ? rest_ : full_;
  slot.filled = rest ? &slot.rest : &slot.full;
  slot.filled->position = next_;
  batch_rows_.clear();
  for (int64_t i = 0; i < part.size; ++i)
    batch_rows_.push_back(Row(next_.batch * step_ + part.begin + i));
  if (part.size > 0) RETURN_IF_ERROR(reader_->Read(batch_rows_, slot.filled->tensors));
  next_ = After(next_);
  return true;
}

int64_t Pipeline::Maker::Row(int64_t index) const {
  return order_->At(together() ? index : options_.worker + index * options_.workers);
}

}  // namespace tfjob::data
