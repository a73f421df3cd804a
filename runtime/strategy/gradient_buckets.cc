#include "runtime/strategy/gradient_buckets.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/base/thread_pool.h"
#include "runtime/optimizer/finite.h"
#include "runtime/strategy/scale.h"
#include "runtime/tensor/half.h"
#include "runtime/trace/trace.h"

namespace tfjob::strategy {
namespace {

// The memory is also used to broadcast variables, which may be larger than all gradients combined.
constexpr size_t kLeastMemoryBytes = 1 << 20;

}  // namespace

GradientBuckets::GradientBuckets(BucketPlan plan, size_t variables, size_t totals,
                                 bool checks_numbers)
    : plan_(std::move(plan)),
      totals_(totals),
      rows_(plan_.tables),
      item_of_variable_(variables, -1),
      table_of_variable_(variables, -1),
      checks_numbers_(checks_numbers),
      finite_(variables, 1) {
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
  for (size_t b = 0; b < plan_.buckets.size(); ++b) {
    bucket_of_item_.insert(bucket_of_item_.end(), plan_.buckets[b].count, b);
    if (plan_.buckets[b].exchange >= 0) bucket_of_exchange_.push_back(b);
    suits_device_.push_back(strategy::SuitsDevice(plan_, plan_.buckets[b]));
  }
  sources_.resize(plan_.items.size());
  // A float32 sum is twice as large as the bfloat16 values that are sent, so it starts at twice
  // their position.
  if (std::ranges::any_of(plan_.items, &BucketItem::compressed))
    wide_ = Tensor(DType::kFloat32, {static_cast<int64_t>(plan_.bytes / sizeof(BFloat16))});
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

Status GradientBuckets::Connect(collectives::Communicator& communicator,
                                device::DeviceRuntime* device) {
  Disconnect();
  RETURN_IF_ERROR(AllocateOnDevice(device));
  ASSIGN_OR_RETURN(memory_, communicator.Allocate(std::max(plan_.bytes, kLeastMemoryBytes)));
  communicator_ = &communicator;
  return OkStatus();
}

// The padding between the items must be zero.
Status GradientBuckets::AllocateOnDevice(device::DeviceRuntime* device) {
  const bool allocated = device != nullptr && device == device_ && on_device_ != nullptr;
  device_ = device;
  if (allocated) return OkStatus();
  on_device_.reset();
  copies_.reset();
  if (device == nullptr || plan_.bytes == 0) return OkStatus();
  ASSIGN_OR_RETURN(on_device_,
                   device->Allocate(device::MemoryKind::kDevice, plan_.bytes,
                                    Buffer::Contents::kZero, "the sums of the tasks' gradients"));
  if (!checks_numbers_) return OkStatus();
  ASSIGN_OR_RETURN(
      copies_, device->Allocate(device::MemoryKind::kPinned, plan_.bytes, Buffer::Contents::kZero,
                                "copies of the sums of gradients"));
  return OkStatus();
}

void GradientBuckets::Disconnect() {
  rows_.Disconnect();
  communicator_ = nullptr;
  memory_.reset();
}

bool GradientBuckets::SuitsDevice(int v) const {
  const int item = item_of_variable_[static_cast<size_t>(v)];
  return item >= 0 && suits_device_[bucket_of_item_[static_cast<size_t>(item)]] != 0;
}

bool GradientBuckets::OnDevice(int v) const {
  return device_ != nullptr && SuitsDevice(v);
}

std::span<std::byte> GradientBuckets::MemoryOf(int v) {
  ENFORCE(communicator_ != nullptr, "a connection");
  const int index = item_of_variable_[static_cast<size_t>(v)];
  if (index < 0) return {};
  const BucketItem& item = plan_.items[static_cast<size_t>(index)];
  return item.compressed ? std::as_writable_bytes(WideOf(item)) : BytesOf(item);
}

void GradientBuckets::Begin(Weights weights) {
  ENFORCE(communicator_ != nullptr, "a connection");
  weights_ = weights;
  exchange_failed_ = false;
  rows_.Begin();
  std::ranges::fill(sources_, nullptr);
  MutexLock lock(mutex_);
  for (size_t b = 0; b < missing_.size(); ++b) missing_[b] = plan_.buckets[b].count;
  for (const size_t b : bucket_of_exchange_) missing_[b] = 1;
  missing_.back() = 1;  // the totals
  if (rows_bucket_ < missing_.size()) missing_[rows_bucket_] = plan_.tables.size();
  result_ = OkStatus();
  next_ = 0;
}

std::span<std::byte> GradientBuckets::BytesOf(const BucketItem& item) const {
  const size_t bytes = static_cast<size_t>(item.elements) * SizeOf(SentType(item));
  return memory_->bytes().subspan(item.begin, bytes);
}

std::span<float> GradientBuckets::WideOf(const BucketItem& item) {
  return wide_.data<float>().subspan(item.begin / sizeof(BFloat16),
                                     static_cast<size_t>(item.elements));
}

void GradientBuckets::Pack(const BucketItem& item, std::span<const std::byte> value) {
  const std::span<std::byte> scaled = MemoryOf(item.variable);
  ENFORCE(value.size() == scaled.size(), "a contribution of the variable's size");
  const double weight = item.gradient ? weights_.gradient : weights_.assign;
  Scale(item.dtype, value, weight, scaled);
  if (!item.compressed) return;
  FromFloat(WideOf(item).data(), reinterpret_cast<BFloat16*>(BytesOf(item).data()),
            static_cast<size_t>(item.elements));
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
    const BucketItem& own = plan_.items[static_cast<size_t>(item)];
    if (OnDevice(v)) {
      ENFORCE(value.size() == BytesOf(own).size(), "a contribution of the variable's size");
      ENFORCE(weights_.gradient == 1, "gradients that the program has weighted");
      sources_[static_cast<size_t>(item)] = value.data();
    } else {
      Pack(own, value);
    }
    Complete(bucket_of_item_[static_cast<size_t>(item)]);
  }
}

void GradientBuckets::ZeroOnDevice(const Bucket& bucket) {
  const std::vector<std::byte> zeros(bucket.bytes);
  const Status written = device_->Write(static_cast<std::byte*>(on_device_.get()) + bucket.begin,
                                        zeros.data(), zeros.size());
  if (!written.ok()) communicator_->Abort(written);
}

void GradientBuckets::AddZeros() {
  for (size_t b = 0; b < plan_.buckets.size(); ++b)
    if (device_ != nullptr && suits_device_[b] != 0) ZeroOnDevice(plan_.buckets[b]);
  for (size_t i = 0; i < plan_.items.size(); ++i) {
    const std::span<std::byte> bytes = BytesOf(plan_.items[i]);
    std::memset(bytes.data(), 0, bytes.size());
    Complete(bucket_of_item_[i]);
  }
  for (size_t t = 0; t < plan_.tables.size(); ++t) Complete(rows_bucket_);
  for (const size_t b : bucket_of_exchange_) {
    const Bucket& bucket = plan_.buckets[b];
    std::memset(memory_->bytes().data() + bucket.begin, 0, bucket.bytes);
    Complete(b);
  }
}

// Returns an error if this rank has not completed all buckets before this one. They could not be
// reduced, so the program would wait forever.
Status GradientBuckets::CheckTurn(size_t bucket) const {
  const auto end = missing_.begin() + static_cast<ptrdiff_t>(bucket);
  const auto found = std::find_if(missing_.begin(), end, [](size_t count) { return count > 0; });
  if (found == end) return OkStatus();
  return Internal("bucket ", bucket, " of the step is complete before bucket ",
                  found - missing_.begin(), ", which still lacks ", *found,
                  " values; the order of the program's exchanges and contributions differs from ",
                  "the plan: ", Describe(plan_));
}

// Returns an error if a bucket before the totals is incomplete, unless the step has failed.
Status GradientBuckets::CheckAll() {
  MutexLock lock(mutex_);
  return result_.ok() ? CheckTurn(missing_.size() - 1) : OkStatus();
}

Status GradientBuckets::AllReduceMean(int64_t number, DType dtype, std::span<std::byte> values) {
  const size_t index = number < std::ssize(bucket_of_exchange_)
                           ? bucket_of_exchange_[static_cast<size_t>(number)]
                           : plan_.buckets.size();
  const bool planned = index < plan_.buckets.size() && plan_.buckets[index].dtype == dtype &&
                       plan_.buckets[index].bytes == values.size();
  if (!planned) {
    return Internal("exchange ", number, " of the program, ", values.size(), " bytes of ",
                    Name(dtype), ", is not in the plan: ", Describe(plan_));
  }
  const std::span<std::byte> memory =
      memory_->bytes().subspan(plan_.buckets[index].begin, values.size());
  Scale(dtype, values, weights_.gradient, memory);
  MutexLock lock(mutex_);
  RETURN_IF_ERROR(CheckTurn(index));
  missing_[index] = 0;
  // If it is the turn of this bucket, this thread reduces it, which is faster than waking the
  // background thread.
  while (next_ <= index) {
    if (next_ == index && !reducing_) {
      ReduceNext();
    } else {
      idle_.Wait(mutex_);
    }
  }
  exchange_failed_ = !result_.ok();
  RETURN_IF_ERROR(result_);
  if (next_ < missing_.size() && missing_[next_] == 0) work_.NotifyOne();
  std::memcpy(values.data(), memory.data(), values.size());
  return OkStatus();
}

Status GradientBuckets::Finish(std::span<double> totals) {
  ENFORCE(totals.size() == totals_, "as many totals as the constructor was told");
  const Bucket& last = plan_.buckets.back();
  const std::span<std::byte> memory = memory_->bytes().subspan(last.begin, last.bytes);
  if (!totals.empty()) std::memcpy(memory.data(), totals.data(), memory.size());
  if (Status all = CheckAll(); !all.ok()) {
    Abandon(all);
    return all;
  }
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
  const int index = item_of_variable_[static_cast<size_t>(v)];
  if (index < 0) return {};
  const BucketItem& item = plan_.items[static_cast<size_t>(index)];
  if (OnDevice(v))
    return {static_cast<const std::byte*>(on_device_.get()) + item.begin, BytesOf(item).size()};
  if (!item.compressed) return BytesOf(item);
  return std::as_bytes(wide_.data<float>().subspan(item.begin / sizeof(BFloat16),
                                                   static_cast<size_t>(item.elements)));
}

bool GradientBuckets::Finite(int v) const {
  return finite_[static_cast<size_t>(v)] != 0;
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
    while (!stopping_ && (reducing_ || next_ == plan_.buckets.size() || missing_[next_] > 0))
      work_.Wait(mutex_);
    if (stopping_) return;
    ReduceNext();
    idle_.NotifyOne();
  }
}

Status GradientBuckets::Reduce(size_t index) {
  const trace::Span span(trace::Category::kExchange, "all-reduce");
  if (index == rows_bucket_) {
    RETURN_IF_ERROR(rows_.Exchange(*communicator_));
    if (checks_numbers_) CheckRows();
    return OkStatus();
  }
  const Bucket& bucket = plan_.buckets[index];
  if (device_ != nullptr && suits_device_[index] != 0) return ReduceOnDevice(bucket);
  if (index + 1 == plan_.buckets.size()) RETURN_IF_ERROR(AwaitDevice());
  const std::span<std::byte> values = memory_->bytes().subspan(bucket.begin, bucket.bytes);
  if (values.empty()) return OkStatus();
  RETURN_IF_ERROR(communicator_->AllReduce(values, bucket.dtype, collectives::Reduction::kSum));
  for (const BucketItem& item : std::span(plan_.items).subspan(bucket.first, bucket.count)) {
    if (item.compressed) Widen(item);
    if (checks_numbers_) {
      finite_[static_cast<size_t>(item.variable)] =
          optimizer::AllFinite(item.dtype, Reduced(item.variable));
    }
  }
  return OkStatus();
}

// If numbers are checked, the host needs a copy of the sum.
Status GradientBuckets::ReduceOnDevice(const Bucket& bucket) {
  parts_.clear();
  for (size_t i = bucket.first; i < bucket.first + bucket.count; ++i) {
    const BucketItem& item = plan_.items[i];
    if (sources_[i] == nullptr) continue;
    parts_.push_back(
        {.from = sources_[i], .begin = item.begin - bucket.begin, .bytes = BytesOf(item).size()});
  }
  const std::span<std::byte> copy =
      checks_numbers_
          ? std::span(static_cast<std::byte*>(copies_.get()) + bucket.begin, bucket.bytes)
          : std::span<std::byte>();
  return communicator_->AllReduceOnDevice(
      {.values = {static_cast<std::byte*>(on_device_.get()) + bucket.begin, bucket.bytes},
       .dtype = bucket.dtype,
       .parts = parts_,
       .host_copy = copy});
}

// Waits for the sums on the device, and checks their numbers.
Status GradientBuckets::AwaitDevice() {
  if (device_ == nullptr) return OkStatus();
  RETURN_IF_ERROR(communicator_->AwaitDevice());
  for (const BucketItem& item : plan_.items) {
    if (!checks_numbers_ || !OnDevice(item.variable)) continue;
    finite_[static_cast<size_t>(item.variable)] = optimizer::AllFinite(
        item.dtype,
        {static_cast<const std::byte*>(copies_.get()) + item.begin, BytesOf(item).size()});
  }
  return OkStatus();
}

void GradientBuckets::Widen(const BucketItem& item) {
  const std::span<float> wide = WideOf(item);
  ToFloat(reinterpret_cast<const BFloat16*>(BytesOf(item).data()), wide.data(), wide.size());
}

void GradientBuckets::CheckRows() {
  for (const TableItem& table : plan_.tables) {
    finite_[static_cast<size_t>(table.variable)] =
        optimizer::AllFinite(table.dtype, Reduced(table.variable));
  }
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
