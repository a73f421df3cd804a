// Implements a link's part of a step: sends the gradients and receives the values.
#include <algorithm>
#include <bit>
#include <utility>

#include "runtime/ps/client/link.h"
#include "runtime/ps/limits.h"
#include "runtime/ps/wire.h"
#include "runtime/rpc/wire_status.h"

namespace tfjob::ps {
namespace {

// Gradients are sent as soon as this many bytes are ready, or once no more gradients will follow.
constexpr size_t kWorthAFrame = rpc::kFrameTargetBytes / 4;
}  // namespace

Link::Part Link::part() const {
  if (!up_) return Part::kDown;
  if (refused_) return Part::kRefused;
  if (!started_) return Part::kIdle;
  return answered_ ? Part::kAnswered : Part::kAwaited;
}

// In synchronous mode, the commits of ps 0 tell the other servers.
void Link::SendRate() {
  const std::optional<state::LearningRate>& rate = context_.learning_rate;
  if (!context_.options.chief || !rate || sent_rate_ == rate) return;
  sent_rate_ = rate;
  if (server_ != 0 && context_.options.definition.mode == Mode::kSynchronous) return;
  live_->Send(
      {.type = wire::kSetRate, .step = rate->step, .value = std::bit_cast<int64_t>(rate->rate)});
}

void Link::Start(int64_t epoch) {
  const Step& step = context_.step;
  started_ = first_ = true;
  answered_ = refused_ = false;
  epoch_ = epoch;
  ready_.clear();
  sent_ = offset_ = 0;
  counted_ = false;
  ready_bytes_ = 0;
  // After a restart of the exchange, all values are resent, so the count starts over.
  bytes_to_come_ = bytes_;
  if (live_ == nullptr) return;
  if (server_ != 0 && announced_ != context_.incarnation) {
    announced_ = context_.incarnation;
    live_->Send({.type = wire::kAnnounce, .value = announced_});
  }
  SendRate();
  if (step.rows) return StartRows();
  if (Pulls()) {
    live_->Send(
        {.type = wire::kPull, .sequence = step.sequence, .step = step.step, .value = epoch});
    return;
  }
  for (int shard : shards_) {
    const int variable = context_.shards[static_cast<size_t>(shard)].variable;
    if (step.marked[static_cast<size_t>(variable)]) Mark(shard);
  }
  if (step.unmarked == 0 || !ready_.empty()) live_->Wake();
}

// Requests the rows that the step reads from this server's shards. If there are none, sends no
// request, and the link counts as answered.
void Link::StartRows() {
  bytes_to_come_ = 0;
  for (int index : shards_) {
    const Shard& shard = context_.shards[static_cast<size_t>(index)];
    const RowRange rows = RowsOf(context_.step, shard);
    if (rows.count == 0) continue;
    const auto variable = static_cast<size_t>(shard.variable);
    const std::span<const int64_t> indices =
        context_.step.indices[variable].subspan(rows.begin, rows.count);
    ready_.push_back(
        {.shard = index, .by_rows = true, .count = rows.count, .indices = std::as_bytes(indices)});
    ready_bytes_ += ready_.back().bytes();
    bytes_to_come_ +=
        rows.count *
        static_cast<uint64_t>(RowBytes(context_.options.definition.state.variables[variable]));
  }
  answered_ = ready_.empty();
  if (answered_) {
    answer_ = {};
    context_.changed.NotifyAll();
  } else {
    live_->Wake();
  }
}

Link::RowRange Link::RowsOf(const Step& step, const Shard& shard) const {
  const auto variable = static_cast<size_t>(shard.variable);
  const std::span<const int64_t> indices = step.indices[variable];
  if (indices.empty()) return {};
  const int64_t row_bytes = RowBytes(context_.options.definition.state.variables[variable]);
  // The rows of a shard are adjacent in the list. The list may end with padding (-1).
  const auto end = std::ranges::partition_point(indices, [](int64_t row) { return row >= 0; });
  const auto first = std::lower_bound(indices.begin(), end, shard.offset / row_bytes);
  const auto last = std::lower_bound(first, end, (shard.offset + shard.size) / row_bytes);
  return {static_cast<size_t>(first - indices.begin()), static_cast<size_t>(last - first)};
}

void Link::Mark(int shard) {
  if (!started_) return;
  ready_.push_back(UpdateOf(shard));
  ready_bytes_ += ready_.back().bytes();
}

Link::Update Link::UpdateOf(int index) const {
  const Shard& shard = context_.shards[static_cast<size_t>(index)];
  const auto variable = static_cast<size_t>(shard.variable);
  const std::span<const std::byte> gradient = context_.step.gradients[variable];
  if (gradient.empty()) return {.shard = index};
  const Definition& definition = context_.options.definition;
  if (!HasRowGradient(definition, shard.variable)) {
    return {.shard = index,
            .values = gradient.subspan(static_cast<size_t>(shard.offset),
                                       static_cast<size_t>(shard.size))};
  }
  const auto [begin, count] = RowsOf(context_.step, shard);
  const auto bytes = static_cast<size_t>(RowBytes(definition.state.variables[variable]));
  return {.shard = index,
          .by_rows = true,
          .count = count,
          .indices = std::as_bytes(context_.step.indices[variable].subspan(begin, count)),
          .values = gradient.subspan(begin * bytes, count * bytes)};
}

std::span<const std::byte> Link::Update::Piece(size_t offset, size_t most) const {
  const bool of_indices = offset < indices.size();
  const std::span<const std::byte> part = of_indices ? indices : values;
  if (!of_indices) offset -= indices.size();
  return part.subspan(offset, std::min(most, part.size() - offset));
}

void Link::Wake() {
  if (live_ != nullptr && started_ && ready_bytes_ >= kWorthAFrame) live_->Wake();
}

void Link::Flush() {
  {
    MutexLock lock(context_.mutex);
    if (live_ == nullptr || !started_) return;
    if (ready_bytes_ > kFlushBytes) return live_->Wake();
  }
  // Do not hold the lock here, because NextFrame acquires it. connection_ stays valid, because only
  // the caller's thread (this thread) closes the connection.
  connection_->Flush();
}

bool Link::NextFrame(rpc::OutgoingFrame& frame) {
  MutexLock lock(context_.mutex);
  return NextFill(frame) || NextPush(frame);
}

bool Link::NextPush(rpc::OutgoingFrame& frame) {
  const Step& step = context_.step;
  // A server may answer before all gradients were sent, for example if it already has them. Send no
  // more of them, because the caller may change them once the step is complete.
  if (!step.active || Pulls() || !started_ || refused_ || answered_) return false;
  const bool whole = step.unmarked == 0;
  // A server without shards still gets one frame, so that it answers and, if it is ps 0, counts
  // the step.
  const bool empty = shards_.empty() && first_ && whole && !step.rows;
  if (!empty && (sent_ == ready_.size() || (!whole && ready_bytes_ < kWorthAFrame))) return false;
  frame.header = {.type = step.rows ? wire::kPullRows : wire::kPush,
                  .flags = static_cast<uint16_t>(first_ ? wire::kFirst : 0),
                  .sequence = step.sequence,
                  .step = step.step,
                  .value = epoch_};
  if (std::exchange(first_, false) && server_ == 0 && step.drawn > 0) {
    frame.segments.push_back(
        {.index = wire::kDrawn, .offset = static_cast<uint64_t>(step.drawn), .bytes = {}});
  }
  size_t total = 0;
  while (sent_ < ready_.size() && total < rpc::kFrameTargetBytes &&
         frame.segments.size() < rpc::kFrameTargetSegments) {
    total += AppendGradient(frame);
  }
  if (step.rows && sent_ == ready_.size()) frame.header.flags |= wire::kLast;
  return true;
}

// Appends either the number of rows of an update (and returns 0), or the next piece of the update
// (and returns the size of the piece in bytes).
size_t Link::AppendGradient(rpc::OutgoingFrame& frame) {
  const Update& update = ready_[sent_];
  const auto index = static_cast<uint32_t>(update.shard);
  size_t bytes = 0;
  if (update.by_rows && !std::exchange(counted_, true)) {
    frame.segments.push_back(
        {.index = index, .flags = wire::kRowCount, .offset = update.count, .bytes = {}});
  } else {
    // An empty segment tells the server not to wait for this shard.
    const std::span<const std::byte> piece = update.Piece(offset_, rpc::kFrameTargetBytes);
    bytes = piece.size();
    Lend();
    frame.segments.push_back(
        {.index = index, .offset = offset_, .bytes = piece, .release = Released, .argument = this});
  }
  ready_bytes_ -= bytes;
  offset_ += bytes;
  if (offset_ == update.bytes()) {
    ++sent_;
    offset_ = 0;
    counted_ = false;
  }
  return bytes;
}

// ---- memory that the connection reads

void Link::Released(void* link) {
  auto* self = static_cast<Link*>(link);
  MutexLock lock(self->flight_mutex_);
  if (--self->in_flight_ == 0) self->released_.NotifyAll();
}

void Link::Lend() {
  MutexLock lock(flight_mutex_);
  ++in_flight_;
}

bool Link::Lent() {
  MutexLock lock(flight_mutex_);
  return in_flight_ > 0;
}

void Link::Ignore() {
  MutexLock lock(context_.mutex);
  // Clear started_, so that OnValues ignores further frames.
  if (!answered_) started_ = false;
}

void Link::AwaitReader(std::optional<SteadyTime> deadline) {
  MutexLock lock(context_.mutex);
  while (deadline && reading_ && context_.changed.WaitUntil(context_.mutex, *deadline)) {
  }
  if (deadline && reading_) {
    // The server has stopped in the middle of a frame.
    connection_->Cancel(Unavailable("the rest of a frame of its values did not arrive"));
  }
  while (reading_) context_.changed.Wait(context_.mutex);
}

void Link::Release() {
  // Segments handed to the connection cannot be recalled; only closing the connection
  // releases them.
  if (Lent()) Disconnect();
}

void Link::AwaitWriter(SteadyTime deadline) {
  {
    MutexLock lock(flight_mutex_);
    while (in_flight_ > 0 && released_.WaitUntil(flight_mutex_, deadline)) {
    }
    if (in_flight_ == 0) return;
  }
  bool answered = false;
  std::string when;
  {
    MutexLock lock(context_.mutex);
    answered = this->answered();
    when = Awaiting();
  }
  Disconnect();
  {
    MutexLock lock(context_.mutex);
    started_ = answered;
  }
  Say(state::PeerEvent::Kind::kLost,
      StrCat(name_, " was lost ", when, ": it did not read the rest of a gradient"));
}

// ---- values

void Link::OnValues(rpc::IncomingFrame& frame) {
  Step* step = nullptr;
  {
    MutexLock lock(context_.mutex);
    if (!started_ || !context_.step.active || answered_ ||
        frame.header.sequence != context_.step.sequence) {
      return;  // the answer to an earlier step
    }
    reading_ = true;
    step = &context_.step;
  }
  // Read the values without the lock. The spans stay valid, because AwaitReader waits while
  // reading_ is set.
  const uint64_t bytes = frame.remaining();
  Status status;
  for (const rpc::SegmentInfo& segment : frame.segments) {
    StatusOr<std::span<std::byte>> target = TargetOf(*step, segment);
    status = target.ok() ? frame.Receive(*target) : target.status();
    if (!status.ok()) break;
  }
  EndValues(frame, bytes, std::move(status));
}

StatusOr<std::span<std::byte>> Link::TargetOf(const Step& step,
                                              const rpc::SegmentInfo& segment) const {
  ASSIGN_OR_RETURN(const Shard* shard, ShardOf(segment));
  const auto variable = static_cast<size_t>(shard->variable);
  const Definition& definition = context_.options.definition;
  if (!step.rows) {
    if (IsTable(definition, shard->variable)) {
      return DataLoss(name_, ": bytes of shard ", segment.index, ", of which only rows are read");
    }
    return step.values[variable].subspan(static_cast<size_t>(shard->offset) + segment.offset,
                                         segment.length);
  }
  const RowRange rows = RowsOf(step, *shard);
  // A variable without requested rows need not be a matrix.
  const auto row = rows.count == 0
                       ? size_t{0}
                       : static_cast<size_t>(RowBytes(definition.state.variables[variable]));
  // ShardOf has checked that this sum does not overflow.
  if (segment.offset + segment.length > rows.count * row) {
    return DataLoss(name_, ": shard ", segment.index, ": only ", rows.count,
                    " of its rows were asked for");
  }
  return step.values[variable].subspan(rows.begin * row + segment.offset, segment.length);
}

void Link::EndValues(const rpc::IncomingFrame& frame, uint64_t bytes, Status status) {
  MutexLock lock(context_.mutex);
  reading_ = false;
  torn_ = torn_ || (absl::IsUnavailable(status) && !context_.step.rows);
  if (frame.header.sequence != context_.step.sequence) {
    // The step was restarted under another sequence while the frame was being read. This frame
    // contains values of the earlier state; the values of the new state follow.
    context_.changed.NotifyAll();
    return;
  }
  bytes_to_come_ -= std::min(bytes_to_come_, bytes);
  const bool last = (frame.header.flags & wire::kLast) != 0;
  const bool again = (frame.header.flags & wire::kAgain) != 0;
  if (last) {
    if (status.ok()) status = CheckStep(frame.header.step);
    // An answer with kAgain carries no values, because the caller's values are current.
    if (status.ok() && bytes_to_come_ > 0 && (!again || context_.step.rows)) {
      status = DataLoss(name_, ": ", bytes_to_come_, " bytes of its values did not arrive");
    }
    answered_ = status.ok();
    if (answered_ && !again && !context_.step.rows) torn_ = false;
    answer_ = frame.header;
  }
  // After an error, do not trust later frames. The exchange is repeated on a new connection.
  if (!status.ok()) connection_->Cancel(status);
  // Wake the caller only if it can continue.
  const bool others =
      std::ranges::any_of(context_.links, [](const Link* link) { return link->Awaited(); });
  if (!others || !started_ || again || !status.ok()) context_.changed.NotifyAll();
}

void Link::OnRefused(rpc::IncomingFrame& frame) {
  std::string body = frame.ReadString(frame.remaining());
  MutexLock lock(context_.mutex);
  // Ignore the refusal of an earlier step.
  if (!started_ || frame.header.sequence != context_.step.sequence) return;
  refused_ = true;
  why_ = rpc::ErrorFromWire(frame.header.value, body);
  context_.changed.NotifyAll();
}

}  // namespace tfjob::ps
