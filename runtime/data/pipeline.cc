#include "runtime/data/pipeline.h"

#include <algorithm>
#include <thread>
#include <vector>

#include "runtime/base/mutex.h"
#include "runtime/base/thread_pool.h"
#include "runtime/data/batch_maker.h"
#include "runtime/data/table_source.h"
#include "runtime/trace/trace.h"

namespace tfjob::data {

// A ring of slots for batches. The background thread fills the slots, and the owner empties them,
// both in order. When all slots are full, the thread sleeps until half of them are empty. It is
// therefore woken once per half ring rather than once per batch.
class Pipeline::Ring {
 public:
  Ring(Maker& maker, int64_t prefetch) : maker_(maker) {
    // The additional slot is for the batch that the owner is using.
    for (int64_t i = 0; i < prefetch + 1; ++i) slots_.push_back(maker.NewSlot());
    empty_ = slots_.size();
    refill_ = (slots_.size() + 1) / 2;
    thread_ = std::thread([this] { Work(); });
  }
  ~Ring() {
    {
      MutexLock lock(mutex_);
      stopping_ = true;
    }
    emptied_.NotifyAll();
    thread_.join();
  }

  // Returns the next batch, or null after the last one. If the next batch cannot be read, returns
  // the error.
  StatusOr<Batch*> Next() {
    MutexLock lock(mutex_);
    if (holding_) {
      holding_ = false;
      first_ = (first_ + 1) % slots_.size();
      if (++empty_ >= refill_) emptied_.NotifyOne();
    }
    while (filled_ == 0 && !ended_) became_filled_.Wait(mutex_);
    if (filled_ == 0) {
      if (!error_.ok()) return error_;
      return nullptr;
    }
    --filled_;
    holding_ = true;
    return slots_[first_].filled;
  }

 private:
  void Work() {
    SetThreadName("data");
    for (size_t slot = 0; AwaitEmpty(); slot = (slot + 1) % slots_.size()) {
      const StatusOr<bool> filled = [&] {
        const trace::Span span(trace::Category::kData, "make a batch");
        return maker_.Fill(slots_[slot]);
      }();
      const bool made = filled.ok() && *filled;
      MutexLock lock(mutex_);
      if (made) {
        --empty_;
        ++filled_;
      }
      ended_ = !made;
      error_ = filled.status();
      became_filled_.NotifyOne();
      if (!made) return;
    }
  }
  // Returns false if the thread should stop.
  bool AwaitEmpty() {
    MutexLock lock(mutex_);
    if (empty_ == 0) {
      while (empty_ < refill_ && !stopping_) emptied_.Wait(mutex_);
    }
    return !stopping_;
  }

  Maker& maker_;
  // Accessed without the mutex, because the counts below determine whether the thread or the owner
  // may use a slot.
  std::vector<BatchSlot> slots_;
  size_t refill_;
  std::thread thread_;
  Mutex mutex_;
  CondVar emptied_, became_filled_;
  size_t empty_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t filled_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t first_ ABSL_GUARDED_BY(mutex_) = 0;  // the slot that the owner is using or will use next
  bool holding_ ABSL_GUARDED_BY(mutex_) = false;  // the owner is using slot first_
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  Status error_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
};

const Tensor* Batch::Find(std::string_view name) const {
  const auto found = std::ranges::find(tensors, name, &NamedTensor::name);
  return found == tensors.end() ? nullptr : &found->value;
}

StatusOr<std::unique_ptr<Pipeline>> Pipeline::Create(std::shared_ptr<const Dataset> dataset,
                                                     const PipelineOptions& options) {
  return Create(TableSource(std::move(dataset)), options);
}

StatusOr<std::unique_ptr<Pipeline>> Pipeline::Create(std::shared_ptr<const Source> source,
                                                     const PipelineOptions& options) {
  ASSIGN_OR_RETURN(std::unique_ptr<Maker> maker, Maker::Create(std::move(source), options));
  return std::unique_ptr<Pipeline>(new Pipeline(std::move(maker), options));
}

Pipeline::Pipeline(std::unique_ptr<Maker> maker, const PipelineOptions& options)
    : maker_(std::move(maker)), prefetch_(options.prefetch), next_(options.start) {
  if (options.prefetch > 0) {
    ring_ = std::make_unique<Ring>(*maker_, options.prefetch);
  } else {
    slot_ = std::make_unique<BatchSlot>(maker_->NewSlot());
  }
}

Pipeline::~Pipeline() = default;

const Batch* Pipeline::Next() {
  if (!status_.ok()) return nullptr;
  const auto next = [&]() -> StatusOr<Batch*> {
    if (ring_ != nullptr) return ring_->Next();
    ASSIGN_OR_RETURN(const bool made, maker_->Fill(*slot_));
    return made ? slot_->filled : nullptr;
  };
  const StatusOr<Batch*> batch = next();
  status_ = batch.status();
  if (!batch.ok() || *batch == nullptr) return nullptr;
  next_ = maker_->After((*batch)->position);
  return *batch;
}

Position Pipeline::position() const {
  return next_;
}
int64_t Pipeline::drawn() const {
  return next_.epoch * batches_per_epoch() + next_.batch;
}

void Pipeline::Seek(int64_t drawn) {
  if (drawn == this->drawn() && status_.ok()) return;
  next_ = {drawn / batches_per_epoch(), drawn % batches_per_epoch()};
  ring_.reset();  // stops the thread that uses the maker
  Restart();
}

void Pipeline::TakePart(int64_t worker, int64_t workers) {
  if (maker_->Takes(worker, workers)) return;
  ring_.reset();  // stops the thread that uses the maker
  const int64_t drawn = this->drawn();
  maker_->TakePart(worker, workers);
  // With Sharding::kOff, the number of batches in an epoch depends on the part.
  next_ = {drawn / batches_per_epoch(), drawn % batches_per_epoch()};
  Restart();
}

// Restarts the preparation of batches, with the batch at position next_.
void Pipeline::Restart() {
  status_ = OkStatus();
  maker_->Seek(next_);
  if (prefetch_ > 0) {
    ring_ = std::make_unique<Ring>(*maker_, prefetch_);
  } else {
    *slot_ = maker_->NewSlot();
  }
}

int64_t Pipeline::batches_per_epoch() const {
  return maker_->batches_per_epoch();
}
int64_t Pipeline::remainder() const {
  return maker_->remainder();
}

}  // namespace tfjob::data
