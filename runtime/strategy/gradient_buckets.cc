#include "runtime/strategy/gradient_buckets.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/base/thread_pool.h"

namespace tfjob::strategy {
namespace {

// The memory also serves to broadcast variables, which may be larger than all gradients.
constexpr size_t kLeastMemoryBytes = 1 << 20;

template <typename T>
void Scale(std::span<const std::byte> from, double weight, std::span<std::byte> to) {
  const auto factor = static_cast<T>(weight);
  const auto* source = reinterpret_cast<const T*>(from.data());
  auto* target = reinterpret_cast<T*>(to.data());
  for (size_t i = 0; i < to.size() / sizeof(T); ++i) target[i] = source[i] * factor;
}

}  // namespace

GradientBuckets::GradientBuckets(BucketPlan plan, size_t variables, size_t totals)
    : plan_(std::move(plan)), totals_(totals), item_of_variable_(variables, -1) {
  plan_.buckets.push_back({.dtype = DType::kFloat64,
                           .begin = plan_.bytes,
                           .bytes = totals * sizeof(double),
                           .first = plan_.items.size()});
  plan_.bytes += totals * sizeof(double);
  for (size_t i = 0; i < plan_.items.size(); ++i)
    item_of_variable_[static_cast<size_t>(plan_.items[i].variable)] = static_cast<int>(i);
  for (size_t b = 0; b < plan_.buckets.size(); ++b)
    bucket_of_item_.insert(bucket_of_item_.end(), plan_.buckets[b].count, b);
  missing_.resize(plan_.buckets.size());
  next_ = plan_.buckets.size();
  thread_ = std::thread([this] { Work(); });
}

GradientBuckets::~GradientBuckets() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  work_.NotifyOne();
  thread_.join();
}

Status GradientBuckets::Connect(collectives::Communicator& communicator) {
  Disconnect();
  ASSIGN_OR_RETURN(memory_, communicator.Allocate(std::max(plan_.bytes, kLeastMemoryBytes)));
  communicator_ = &communicator;
  return OkStatus();
}

void GradientBuckets::Disconnect() {
  communicator_ = nullptr;
  memory_.reset();
}

void GradientBuckets::Begin(Weights weights) {
  ENFORCE(communicator_ != nullptr, "a connection");
  weights_ = weights;
  MutexLock lock(mutex_);
  for (size_t b = 0; b < missing_.size(); ++b) missing_[b] = plan_.buckets[b].count;
  missing_.back() = 1;  // the totals
  result_ = OkStatus();
  next_ = 0;
}

std::span<std::byte> GradientBuckets::BytesOf(const BucketItem& item) const {
  const size_t bytes = static_cast<size_t>(item.elements) * SizeOf(item.dtype);
  return memory_->bytes().subspan(item.begin, bytes);
}

void GradientBuckets::Pack(const BucketItem& item, std::span<const std::byte> value) {
  const std::span<std::byte> to = BytesOf(item);
  ENFORCE(value.size() == to.size(), "a contribution of the variable's size");
  const double weight = item.gradient ? weights_.gradient : weights_.assign;
  if (weight == 1) {
    std::memcpy(to.data(), value.data(), to.size());
  } else if (item.dtype == DType::kFloat64) {
    Scale<double>(value, weight, to);
  } else {
    Scale<float>(value, weight, to);
  }
}

void GradientBuckets::Complete(size_t bucket) {
  MutexLock lock(mutex_);
  if (--missing_[bucket] == 0 && bucket == next_) work_.NotifyOne();
}

void GradientBuckets::Add(int v, std::span<const std::byte> value) {
  const int item = item_of_variable_[static_cast<size_t>(v)];
  if (item < 0) return;
  Pack(plan_.items[static_cast<size_t>(item)], value);
  Complete(bucket_of_item_[static_cast<size_t>(item)]);
}

void GradientBuckets::AddZeros() {
  for (size_t i = 0; i < plan_.items.size(); ++i) {
    const std::span<std::byte> bytes = BytesOf(plan_.items[i]);
    std::memset(bytes.data(), 0, bytes.size());
    Complete(bucket_of_item_[i]);
  }
}

Status GradientBuckets::Finish(std::span<double> totals) {
  ENFORCE(totals.size() == totals_, "as many totals as the constructor was told");
  const Bucket& last = plan_.buckets.back();
  const std::span<std::byte> memory = memory_->bytes().subspan(last.begin, last.bytes);
  if (!totals.empty()) std::memcpy(memory.data(), totals.data(), memory.size());
  Complete(plan_.buckets.size() - 1);
  MutexLock lock(mutex_);
  while (next_ < plan_.buckets.size()) idle_.Wait(mutex_);
  RETURN_IF_ERROR(result_);
  if (!totals.empty()) std::memcpy(totals.data(), memory.data(), memory.size());
  return OkStatus();
}

void GradientBuckets::Abandon(const Status& why) {
  communicator_->Abort(why);
  MutexLock lock(mutex_);
  next_ = plan_.buckets.size();
  while (reducing_) idle_.Wait(mutex_);
}

std::span<const std::byte> GradientBuckets::Reduced(int v) const {
  const int item = item_of_variable_[static_cast<size_t>(v)];
  if (item < 0) return {};
  return BytesOf(plan_.items[static_cast<size_t>(item)]);
}

std::span<std::byte> GradientBuckets::memory() {
  return memory_->bytes();
}

void GradientBuckets::Work() {
  SetThreadName("all-reduce");
  MutexLock lock(mutex_);
  while (true) {
    while (!stopping_ && (next_ == plan_.buckets.size() || missing_[next_] > 0)) work_.Wait(mutex_);
    if (stopping_) return;
    ReduceNext();
    if (next_ == plan_.buckets.size()) idle_.NotifyOne();
  }
}

// Releases the lock while it reduces.
void GradientBuckets::ReduceNext() {
  const size_t current = next_;
  const Bucket& bucket = plan_.buckets[current];
  const std::span<std::byte> values = memory_->bytes().subspan(bucket.begin, bucket.bytes);
  reducing_ = true;
  mutex_.Unlock();
  Status status =
      values.empty() ? OkStatus()
                     : communicator_->AllReduce(values, bucket.dtype, collectives::Reduction::kSum);
  mutex_.Lock();
  reducing_ = false;
  result_ = std::move(status);
  const bool abandoned = next_ != current;
  next_ = result_.ok() && !abandoned ? current + 1 : plan_.buckets.size();
}

}  // namespace tfjob::strategy
