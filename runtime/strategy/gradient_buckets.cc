#include "runtime/strategy/gradient_buckets.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/base/thread_pool.h"
#include "runtime/strategy/scale.h"
#include "runtime/trace/trace.h"

namespace tfjob::strategy {
namespace {

// The memory is also used to broadcast variables, which may be larger than all gradients combined.
constexpr size_t kLeastMemoryBytes = 1 << 20;

}  // namespace

GradientBuckets::GradientBuckets(BucketPlan plan, size_t variables, size_t totals)
    : plan_(std::move(plan)),
      totals_(totals),
      rows_(plan_.tables),
      item_of_variable_(variables, -1),
      table_of_variable_(variables, -1) {
  const bool has_tables = !plan_.tables.empty();
  rows_bucket_ = has_tables ? plan_.buckets.size() : plan_.buckets.size() + 1;
  if (has_tables) plan_.buckets.push_back({.begin = plan_.bytes, .first = plan_.items.size()});
  plan_.buckets.push_back({.dtype = DType::kFloat64,
                           .begin = plan_.bytes,
                           .bytes = totals * sizeof(double),
                           .first = plan_.items.size()});
  plan_.bytes += totals * sizeof(double);
  for (size_t i = 0; i < plan_.items.size(); ++i)
    item_of_variable_[static_cast<size_t>(plan_.items[i].variable)] = static_cast<int>(i);
  for (size_t t = 0; t < plan_.tables.size(); ++t)
    table_of_variable_[static_cast<size_t>(plan_.tables[t].variable)] = static_cast<int>(t);
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
  rows_.Disconnect();
  communicator_ = nullptr;
  memory_.reset();
}

void GradientBuckets::Begin(Weights weights) {
  ENFORCE(communicator_ != nullptr, "a connection");
  weights_ = weights;
  rows_.Begin();
  MutexLock lock(mutex_);
  for (size_t b = 0; b < missing_.size(); ++b) missing_[b] = plan_.buckets[b].count;
  missing_.back() = 1;  // the totals
  if (rows_bucket_ < missing_.size()) missing_[rows_bucket_] = plan_.tables.size();
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
  Scale(item.dtype, value, weight, to);
}

void GradientBuckets::Complete(size_t bucket) {
  MutexLock lock(mutex_);
  if (--missing_[bucket] == 0 && bucket == next_) work_.NotifyOne();
}

void GradientBuckets::Add(int v, std::span<const std::byte> value,
                          std::span<const int64_t> indices) {
  const int item = item_of_variable_[static_cast<size_t>(v)];
  const int table = table_of_variable_[static_cast<size_t>(v)];
  if (table >= 0) {
    rows_.Set(static_cast<size_t>(table), indices, value, weights_.gradient);
    Complete(rows_bucket_);
  } else if (item >= 0) {
    Pack(plan_.items[static_cast<size_t>(item)], value);
    Complete(bucket_of_item_[static_cast<size_t>(item)]);
  }
}

void GradientBuckets::AddZeros() {
  for (size_t i = 0; i < plan_.items.size(); ++i) {
    const std::span<std::byte> bytes = BytesOf(plan_.items[i]);
    std::memset(bytes.data(), 0, bytes.size());
    Complete(bucket_of_item_[i]);
  }
  for (size_t t = 0; t < plan_.tables.size(); ++t) Complete(rows_bucket_);
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
  const int table = table_of_variable_[static_cast<size_t>(v)];
  if (table >= 0) return rows_.Sum(static_cast<size_t>(table)).values;
  const int item = item_of_variable_[static_cast<size_t>(v)];
  if (item < 0) return {};
  return BytesOf(plan_.items[static_cast<size_t>(item)]);
}

int64_t GradientBuckets::ReducedRowCount(int v) const {
  const int table = table_of_variable_[static_cast<size_t>(v)];
  return std::ssize(rows_.Sum(static_cast<size_t>(table)).indices);
}

GradientRows::Rows GradientBuckets::ReducedRows(int v, int64_t rows) {
  return rows_.Padded(static_cast<size_t>(table_of_variable_[static_cast<size_t>(v)]), rows);
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

Status GradientBuckets::Reduce(size_t index) {
  const trace::Span span(trace::Category::kExchange, "all-reduce");
  if (index == rows_bucket_) return rows_.Exchange(*communicator_);
  const Bucket& bucket = plan_.buckets[index];
  const std::span<std::byte> values = memory_->bytes().subspan(bucket.begin, bucket.bytes);
  if (values.empty()) return OkStatus();
  return communicator_->AllReduce(values, bucket.dtype, collectives::Reduction::kSum);
}

// Reduces the next bucket. Releases the lock during the reduction.
void GradientBuckets::ReduceNext() {
  const size_t current = next_;
  reducing_ = true;
  mutex_.Unlock();
  Status status = Reduce(current);
  mutex_.Lock();
  reducing_ = false;
  result_ = std::move(status);
  const bool abandoned = next_ != current;
  next_ = result_.ok() && !abandoned ? current + 1 : plan_.buckets.size();
}

}  // namespace tfjob::strategy
