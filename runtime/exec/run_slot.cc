#include "runtime/exec/run_slot.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/base/check.h"
#include "runtime/exec/memory_plan.h"
#include "runtime/exec/schedule.h"
#include "runtime/trace/trace.h"

namespace tfjob::exec {
namespace {

size_t BytesOf(const Port& port) {
  return static_cast<size_t>(port.type.shape.num_elements()) * SizeOf(port.type.dtype);
}

std::byte* At(const device::Memory& memory, size_t offset) {
  return static_cast<std::byte*>(memory.get()) + offset;
}

}  // namespace

RunSlot::RunSlot(Program::State& state, ThreadPool* pool)
    : s_(state), runtime_(*state.runtime), stream_(pool, *state.runtime, *state.compute) {
  stream_.ShareFailure(&state.failure);
}

RunSlot::~RunSlot() {
  // Synchronize returns immediately if the event covers no operation. Errors are ignored here,
  // because Wait returns the errors of a run.
  if (!ended_.empty()) static_cast<void>(runtime_.Synchronize(*ended_.back()));
}

StatusOr<std::unique_ptr<RunSlot>> RunSlot::Create(Program::State& state, ThreadPool* pool) {
  std::unique_ptr<RunSlot> slot(new RunSlot(state, pool));
  RETURN_IF_ERROR(slot->Allocate());
  RETURN_IF_ERROR(slot->Capture());
  return slot;
}

Status RunSlot::Allocate() {
  using device::MemoryKind;
  constexpr auto kUndefined = Buffer::Contents::kUndefined;
  for (const Port& feed : s_.feeds) {
    feed_offsets_.push_back(feed_bytes_);
    feed_bytes_ += Aligned(BytesOf(feed));
  }
  ASSIGN_OR_RETURN(staged_,
                   runtime_.Allocate(MemoryKind::kPinned, feed_bytes_, kUndefined, "feeds"));
  ASSIGN_OR_RETURN(fed_, runtime_.Allocate(MemoryKind::kDevice, feed_bytes_, kUndefined, "feeds"));
  RETURN_IF_ERROR(AllocateResults());
  ASSIGN_OR_RETURN(copied_, runtime_.NewEvent());
  for (size_t i = 0; i < s_.segments.size(); ++i) {
    ASSIGN_OR_RETURN(ended_.emplace_back(), runtime_.NewEvent());
  }
  return AllocateRefusals();
}

Status RunSlot::AllocateResults() {
  for (size_t i = 0; i < s_.fetches.size(); ++i) {
    const Value& value = s_.plan.fetches[i].value;
    if (s_.kept[i]) {
      fetched_.push_back(nullptr);
      continue;
    }
    if (value.home == Home::kConstant) {
      const Tensor& constant = s_.plan.constants[static_cast<size_t>(value.index)];
      fetched_.push_back(constant.bytes().data());
      continue;
    }
    ASSIGN_OR_RETURN(
        results_.emplace_back(),
        runtime_.Allocate(device::MemoryKind::kPinned, BytesOf(s_.fetches[i]),
                          Buffer::Contents::kZero, StrCat("fetch ", s_.fetches[i].name)));
    fetched_.push_back(At(results_.back(), 0));
  }
  return OkStatus();
}

Status RunSlot::AllocateRefusals() {
  using device::MemoryKind;
  const auto may_refuse = [](const PlannedStep& step) {
    return MayRefuseValues(step.request.op, step.request.attributes);
  };
  if (std::ranges::none_of(s_.plan.steps, may_refuse)) return OkStatus();
  const auto allocate = [this](MemoryKind kind) {
    return runtime_.Allocate(kind, sizeof(kernels::Refusal), Buffer::Contents::kZero, "a refusal");
  };
  if (s_.refusal == nullptr) {
    ASSIGN_OR_RETURN(s_.refusal, allocate(MemoryKind::kDevice));
    ASSIGN_OR_RETURN(s_.no_refusal, allocate(MemoryKind::kDevice));
  }
  ASSIGN_OR_RETURN(read_refusal_, allocate(MemoryKind::kPinned));
  stream_.set_refusal(static_cast<kernels::Refusal*>(s_.refusal.get()));
  return OkStatus();
}

Status RunSlot::Capture() {
  for (const FedInput& fed : s_.fed_inputs) {
    s_.steps[static_cast<size_t>(fed.step)].inputs[static_cast<size_t>(fed.input)] =
        At(fed_, feed_offsets_[static_cast<size_t>(fed.feed)]);
  }
  for (size_t i = 0; i < s_.segments.size(); ++i) {
    RETURN_IF_ERROR(runtime_.BeginCapture(*s_.compute));
    SubmitSegment(i);
    ASSIGN_OR_RETURN(sequences_.emplace_back(), runtime_.EndCapture(*s_.compute));
  }
  return OkStatus();
}

void RunSlot::SubmitSegment(size_t number) {
  const Segment& segment = s_.segments[number];
  const int64_t refusals = stream_.refusals();
  for (int i = segment.begin; i < segment.end; ++i) {
    Step& step = s_.steps[static_cast<size_t>(i)];
    stream_.BeginStep(i);
    step.kernel->Run(step.inputs.data(), step.outputs.data(), s_.workspace, stream_);
  }
  ENFORCE(number == 0 || stream_.refusals() == refusals, "only the first segment checks values");
  if (number == 0 && stream_.refusals() > 0)
    stream_.Copy(read_refusal_.get(), s_.refusal.get(), sizeof(kernels::Refusal));
  for (size_t i = 0; i < s_.fetches.size(); ++i) {
    if (s_.plan.fetches[i].value.home == Home::kConstant || s_.kept[i]) continue;
    const bool here = std::ranges::count(segment.announced, static_cast<int>(i)) > 0;
    const bool at_end = number + 1 == s_.segments.size() &&
                        std::ranges::none_of(s_.segments, [i](const Segment& other) {
                          return std::ranges::count(other.announced, static_cast<int>(i)) > 0;
                        });
    if (!here && !at_end) continue;
    stream_.Copy(const_cast<std::byte*>(fetched_[i]), s_.fetched[i], BytesOf(s_.fetches[i]));
  }
}

// Copies neighbouring feeds of the host together.
void RunSlot::CopyFeeds(std::span<const Feed> feeds) {
  size_t begin = 0;  // of the feeds that are staged, but have not been copied
  const auto copy_staged = [&](size_t end) {
    runtime_.Copy(At(fed_, begin), At(staged_, begin), end - begin, *s_.copies);
  };
  for (size_t i = 0; i < feeds.size(); ++i) {
    const std::span<const std::byte> bytes = feeds[i].bytes;
    if (feeds[i].on_device) {
      copy_staged(feed_offsets_[i]);
      runtime_.Copy(At(fed_, feed_offsets_[i]), bytes.data(), bytes.size(), *s_.copies);
      begin = feed_offsets_[i] + Aligned(bytes.size());
    } else if (!bytes.empty()) {
      std::memcpy(At(staged_, feed_offsets_[i]), bytes.data(), bytes.size());
    }
  }
  copy_staged(feed_bytes_);
}

void RunSlot::Start(std::span<const Feed> feeds, int64_t run) {
  const trace::Span span(trace::Category::kCopy, "copy feeds, launch");
  CopyFeeds(feeds);
  runtime_.Record(*copied_, *s_.copies);
  runtime_.Wait(*s_.compute, *copied_);
  // While an earlier run is in progress, it may still have to report the refusal.
  if (s_.clear_refusal && s_.runs == 0) {
    runtime_.Copy(s_.refusal.get(), s_.no_refusal.get(), sizeof(kernels::Refusal), *s_.compute);
    s_.clear_refusal = false;
  }
  stream_.BeginRun(run);
  for (size_t i = 0; i < sequences_.size(); ++i) {
    runtime_.Replay(*sequences_[i], *s_.compute);
    runtime_.Record(*ended_[i], *s_.compute);
  }
}

void RunSlot::ReadRefusal() {
  const auto& refusal = *static_cast<const kernels::Refusal*>(read_refusal_.get());
  s_.clear_refusal |= refusal.number != 0;
  stream_.Refuse(refusal);
}

Status RunSlot::Wait(absl::FunctionRef<void(int)> on_ready) {
  const trace::Span span(trace::Category::kStep, "wait for the device");
  for (size_t i = 0; i < ended_.size(); ++i) {
    RETURN_IF_ERROR(runtime_.Synchronize(*ended_[i]));
    if (i == 0 && stream_.refusals() > 0) ReadRefusal();
    for (const int fetch : s_.segments[i].announced) {
      if (stream_.ok()) on_ready(fetch);
    }
  }
  if (stream_.ok()) return OkStatus();
  const auto step = static_cast<size_t>(s_.failure.step);
  return Annotate(s_.failure.status, s_.plan.steps[step].name);
}

}  // namespace tfjob::exec
