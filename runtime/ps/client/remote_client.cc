#include "runtime/ps/client/remote_client.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/str_join.h"
#include "runtime/ps/limits.h"
#include "runtime/ps/wire.h"

namespace tfjob::ps {
namespace {

// The time after which a query is repeated. Servers answer at once, so a missing answer is probably
// lost.
constexpr Duration kAskTimeout{1s};
// How long to wait, after an exchange has failed, for frames being received.
constexpr Duration kFramePatience{500ms};
// How long to wait, after an exchange has succeeded, for frames being sent. Normally, all have been
// sent, but a server may answer early.
constexpr Duration kSendPatience{2s};

}  // namespace

RemoteClient::RemoteClient(ClientOptions options, std::unique_ptr<rpc::Connector> own_connector)
    : context_(options, Place(options.definition, static_cast<int>(options.servers.size()))),
      own_connector_(std::move(own_connector)),
      fingerprint_(Fingerprint(options.definition)),
      shards_of_(options.definition.state.variables.size()),
      states_(options.servers.size()),
      known_(options.servers.size()) {
  for (size_t i = 0; i < context_.shards.size(); ++i) {
    shards_of_[static_cast<size_t>(context_.shards[i].variable)].push_back(static_cast<int>(i));
  }
  for (int i = 0; i < static_cast<int>(options.servers.size()); ++i) {
    links_.push_back(std::make_unique<Link>(context_, i));
    context_.links.push_back(links_.back().get());
  }
  gate_ = std::make_shared<LinkGate>(context_);
  context_.connector =
      own_connector_ != nullptr ? own_connector_.get() : context_.options.connector;
  // At every fourth tick of the watch (once per second by default), the chief requests the list of
  // members from ps 0 and renews a hold in progress.
  watch_ = std::make_unique<rpc::PeerWatch>(
      [this, ticks = 0]() mutable {
        if (!context_.options.chief || ++ticks % 4 != 0) return;
        links_[0]->Poll();
        links_[0]->RenewHold();
      },
      context_.options.liveness);
  context_.watch = watch_.get();
}

RemoteClient::~RemoteClient() {
  gate_->Close();
  // Disconnect the links first, because Disconnect removes their tickets from the watch.
  for (auto& link : links_) link->Disconnect();
  watch_.reset();
}

Status RemoteClient::CheckValues(std::span<const std::span<std::byte>> values) const {
  const std::vector<state::Variable>& variables = context_.options.definition.state.variables;
  if (values.size() != variables.size()) {
    return InvalidArgument("expected ", variables.size(), " variables, got ", values.size());
  }
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t bytes =
        IsTable(context_.options.definition, static_cast<int>(i))
            ? 0
            : static_cast<size_t>(variables[i].shape.num_elements()) * SizeOf(variables[i].dtype);
    if (values[i].size() != bytes) {
      return InvalidArgument(variables[i].name, ": expected ", bytes, " bytes, got ",
                             values[i].size());
    }
  }
  return OkStatus();
}

// ---- one step

StatusOr<StepResult> RemoteClient::WaitReady(std::span<const std::span<std::byte>> values) {
  RETURN_IF_ERROR(CheckValues(values));
  {
    MutexLock lock(context_.mutex);
    Step& step = context_.step;
    step.active = step.pull = true;
    step.rows = false;
    ++step.sequence;
    step.step = step_;
    step.drawn = 0;
    step.rewound = false;
    step.gradients.clear();
    step.values.assign(values.begin(), values.end());
    step.unmarked = 0;
    // Reset all links, so that every server reports its state before the client requests values.
    for (auto& link : links_) link->Reset();
  }
  epoch_ = registered_epoch_ = 0;
  reported_position_ = -1;
  rolled_back_ = too_stale_ = undated_ = false;
  RETURN_IF_ERROR(Complete());
  return Result();
}

Status RemoteClient::CheckGradient(size_t variable, std::span<const std::byte> gradient,
                                   std::span<const int64_t> indices) const {
  const Definition& definition = context_.options.definition;
  const state::Variable& v = definition.state.variables[variable];
  const bool by_rows = HasRowGradient(definition, static_cast<int>(variable));
  const size_t bytes = by_rows ? indices.size() * static_cast<size_t>(RowBytes(v))
                               : static_cast<size_t>(v.shape.num_elements()) * SizeOf(v.dtype);
  if (gradient.empty() || gradient.size() == bytes) return OkStatus();
  return InvalidArgument(v.name, ": the gradient has ", gradient.size(), " bytes, ",
                         by_rows ? StrCat("its ", indices.size(), " rows ") : "the variable ",
                         bytes);
}

Status RemoteClient::BeginStep(std::span<const std::span<const std::byte>> gradients,
                               std::span<const std::span<std::byte>> values, int64_t drawn,
                               std::span<const std::span<const int64_t>> indices) {
  RETURN_IF_ERROR(CheckValues(values));
  if (gradients.size() != values.size()) {
    return InvalidArgument("expected ", values.size(), " gradients, got ", gradients.size());
  }
  if (!indices.empty() && indices.size() != values.size()) {
    return InvalidArgument("expected ", values.size(), " lists of indices, got ", indices.size());
  }
  for (size_t i = 0; i < values.size(); ++i) {
    RETURN_IF_ERROR(
        CheckGradient(i, gradients[i], indices.empty() ? std::span<const int64_t>() : indices[i]));
  }
  ASSIGN_OR_RETURN(too_stale_, TooStale());
  // Do not send a gradient that was computed from values that had not arrived completely.
  too_stale_ = too_stale_ || Torn();
  MutexLock lock(context_.mutex);
  Step& step = context_.step;
  if (step.active) return FailedPrecondition("the previous step has not ended");
  step.active = true;
  // If a rollback was detected since the last result, or the gradients are too stale, only read the
  // values.
  step.pull = rolled_back_ || too_stale_;
  step.rows = false;
  ++step.sequence;
  step.step = step_;
  // position_ is set if ps 0 was filled again and its new state lacks batches before this one.
  step.rewound = position_ && drawn > 0;
  step.drawn = position_ ? 0 : drawn;
  step.gradients.assign(gradients.begin(), gradients.end());
  step.indices.assign(indices.begin(), indices.end());
  step.indices.resize(values.size());
  step.values.assign(values.begin(), values.end());
  step.marked.assign(values.size(), false);
  step.unmarked = step.pull ? 0 : values.size();
  for (size_t i = 0; i < links_.size(); ++i) {
    // A link that is down is started once Repair has connected it and learned the server's epoch.
    if (links_[i]->part() != Link::Part::kDown) links_[i]->Start(states_[i].epoch);
  }
  return OkStatus();
}

// ---- rows

Status RemoteClient::CheckRows(size_t variable, std::span<const int64_t> indices,
                               std::span<const std::byte> rows) const {
  const Definition& definition = context_.options.definition;
  const state::Variable& v = definition.state.variables[variable];
  if (indices.empty()) return OkStatus();
  if (!IsTable(definition, static_cast<int>(variable)))
    return InvalidArgument(v.name, ": it is no table, and is read whole");
  if (rows.size() != indices.size() * static_cast<size_t>(RowBytes(v))) {
    return InvalidArgument(v.name, ": expected ", indices.size(), " rows of ", RowBytes(v),
                           " bytes, got ", rows.size(), " bytes");
  }
  const auto end = std::ranges::find_if(indices, [](int64_t row) { return row < 0; });
  int64_t least = 0;
  for (const int64_t row : std::span(indices.begin(), end)) {
    if (row < least || row >= v.shape.dim(0)) {
      return InvalidArgument(v.name, ": row ", row, ": expected ascending rows from 0 to ",
                             v.shape.dim(0) - 1);
    }
    least = row + 1;
  }
  return OkStatus();
}

StatusOr<bool> RemoteClient::PullRows(std::span<const std::span<const int64_t>> indices,
                                      std::span<const std::span<std::byte>> rows) {
  const size_t variables = context_.options.definition.state.variables.size();
  if (indices.size() != variables || rows.size() != variables) {
    return InvalidArgument("expected rows of ", variables, " variables, got ", indices.size(),
                           " and ", rows.size());
  }
  for (size_t i = 0; i < variables; ++i) RETURN_IF_ERROR(CheckRows(i, indices[i], rows[i]));
  if (rolled_back_) return false;
  {
    MutexLock lock(context_.mutex);
    Step& step = context_.step;
    if (step.active) return FailedPrecondition("the previous step has not ended");
    step.active = step.pull = step.rows = true;
    ++step.sequence;
    step.step = step_;
    step.drawn = 0;
    step.rewound = false;
    step.gradients.clear();
    step.indices.assign(indices.begin(), indices.end());
    step.values.assign(rows.begin(), rows.end());
    step.unmarked = 0;
    for (size_t i = 0; i < links_.size(); ++i) {
      if (links_[i]->part() != Link::Part::kDown) links_[i]->Start(states_[i].epoch);
    }
  }
  RETURN_IF_ERROR(Complete());
  MutexLock lock(context_.mutex);
  context_.step.active = false;
  return !rolled_back_;
}

StatusOr<bool> RemoteClient::TooStale() {
  const std::optional<int64_t> most = context_.options.max_staleness;
  if (!most) return false;
  if (std::exchange(undated_, false)) return true;
  BeginWait();
  for (;;) {
    {
      MutexLock lock(context_.mutex);
      if (!context_.failure.ok()) return context_.failure;
      if (context_.finished) return Cancelled("the chief ended the job");
    }
    // If ps 0 has been filled again, its step may be earlier than the step of the values.
    const StatusOr<RemoteState> state = links_[0]->QueryStep(kAskTimeout);
    if (state.ok()) return state->ready && state->step - step_ > *most;
    if (absl::IsDataLoss(state.status())) return state.status();
    const std::string waits = StrCat(rpc::TaskName(context_.options.identity),
                                     " waits for the step of ", links_[0]->name());
    if (StopRequested()) return Cancelled("asked to stop while ", waits);
    if (Now() >= deadline_) {
      return DeadlineExceeded("no answer within ", FormatDuration(context_.options.patience), ": ",
                              waits, ": ", Message(state.status()));
    }
    if (Now() >= next_report_) {
      next_report_ = Now() + context_.options.report_every;
      Say(state::PeerEvent::Kind::kWaiting, "ps 0", waits);
    }
    RETURN_IF_ERROR(Repair());
  }
}

void RemoteClient::MarkLocked(int variable) {
  Step& step = context_.step;
  if (!step.active || step.pull || step.marked[static_cast<size_t>(variable)]) return;
  step.marked[static_cast<size_t>(variable)] = true;
  --step.unmarked;
  for (int shard : shards_of_[static_cast<size_t>(variable)]) {
    links_[static_cast<size_t>(context_.shards[static_cast<size_t>(shard)].server)]->Mark(shard);
  }
}

void RemoteClient::MarkReady(int variable) {
  MutexLock lock(context_.mutex);
  MarkLocked(variable);
  for (auto& link : links_) link->Wake();
}

StatusOr<StepResult> RemoteClient::EndStep() {
  {
    MutexLock lock(context_.mutex);
    if (!context_.step.active) return FailedPrecondition("no step was begun");
    for (size_t i = 0; i < shards_of_.size(); ++i) MarkLocked(static_cast<int>(i));
  }
  for (auto& link : links_) link->Flush();
  RETURN_IF_ERROR(Complete());
  return Result();
}

StatusOr<StepResult> RemoteClient::Result() {
  MutexLock lock(context_.mutex);
  StepResult result{.rolled_back = rolled_back_ || context_.step.rewound};
  context_.step.active = false;
  const bool pulled = context_.step.pull;
  result.global_step = links_[0]->answer().step;
  for (auto& link : links_) {
    // After `again`, a link without an answer still has the answer to an earlier step.
    if (!link->answered()) continue;
    const rpc::FrameHeader& answer = link->answer();
    const bool position = synchronous() && link == links_[0];
    if (!position) result.staleness = std::max(result.staleness, answer.value);
    result.dropped = result.dropped || (answer.flags & wire::kDropped) != 0;
    // The servers may have answered with values of different steps. Treat the next gradient as
    // computed from the earliest of these steps.
    if (synchronous()) result.global_step = std::min(result.global_step, answer.step);
  }
  result.again = (links_[0]->answer().flags & wire::kAgain) != 0;
  if (result.again) result.global_step = links_[0]->answer().step;
  if (pulled && (rolled_back_ || too_stale_)) result.dropped = true;
  result.drawn = synchronous() ? links_[0]->answer().value
                               : std::exchange(position_, {}).value_or(context_.step.drawn);
  result.drawn = std::clamp(result.drawn, int64_t{0}, kMostDrawn);
  reported_position_ = result.drawn;
  rolled_back_ = too_stale_ = false;
  step_ = result.global_step;
  return result;
}

// ---- waiting and repairing

void RemoteClient::BeginWait() {
  const Duration patience = context_.options.patience;
  const Duration forever = std::chrono::hours(24 * 365 * 10);
  deadline_ = Now() + (patience > Duration(0) ? patience : forever);
  next_report_ = Now() + context_.options.report_every;
  refused_since_ = {};
}

void RemoteClient::Say(state::PeerEvent::Kind kind, const std::string& peers,
                       const std::string& message) const {
  if (!context_.options.on_event) return;
  context_.options.on_event({.kind = kind, .peer = peers, .address = "", .message = message});
}

Status RemoteClient::Complete() {
  BeginWait();
  Status status;
  for (;;) {
    StatusOr<bool> answered = AwaitAnswers();
    status = answered.status();
    if (!status.ok()) break;
    if (*answered) {
      // After `again`, other servers may still send an answer if the step was committed in the
      // meantime.
      Quiesce();
      AwaitWriters();
      return OkStatus();
    }
    status = CheckStop();
    if (status.ok()) status = Repair();
    if (!status.ok()) break;
    if (OutdatedRows()) {
      Abandon();
      return OkStatus();
    }
  }
  // The caller may reuse its memory as soon as this function returns.
  Abandon();
  MutexLock lock(context_.mutex);
  context_.step.active = false;
  return status;
}

void RemoteClient::Quiesce(std::optional<Deadline> deadline) {
  for (auto& link : links_) link->Ignore();
  for (auto& link : links_) link->AwaitReader(deadline);
}

void RemoteClient::AwaitWriters() {
  const Deadline deadline = SteadyNow() + kSendPatience;
  for (auto& link : links_) link->AwaitWriter(deadline);
}

void RemoteClient::Abandon() {
  Quiesce(SteadyNow() + kFramePatience);
  for (auto& link : links_) link->Release();
}

bool RemoteClient::Torn() {
  MutexLock lock(context_.mutex);
  return std::ranges::any_of(links_, [](const auto& link) { return link->torn(); });
}

// Returns whether the client is waiting for rows of a state that was replaced.
bool RemoteClient::OutdatedRows() {
  MutexLock lock(context_.mutex);
  return context_.step.rows && rolled_back_;
}

bool RemoteClient::NeedsRepair() {
  return std::ranges::any_of(links_, [](const auto& link) {
    const Link::Part part = link->part();
    return part == Link::Part::kDown || part == Link::Part::kRefused || part == Link::Part::kIdle;
  });
}

StatusOr<bool> RemoteClient::AwaitAnswers() {
  for (;;) {
    {
      MutexLock lock(context_.mutex);
      // Wake at least every kStopInterval for CheckStop, which is called below, without the lock,
      // because it calls the user's function.
      while (Now() < std::min(deadline_, next_report_)) {
        if (!context_.failure.ok()) return context_.failure;
        const bool again = !context_.step.rows && links_[0]->part() == Link::Part::kAnswered &&
                           (links_[0]->answer().flags & wire::kAgain) != 0;
        const bool all = std::ranges::all_of(
            links_, [](const auto& link) { return link->part() == Link::Part::kAnswered; });
        if (all || again) return true;
        if (context_.finished) return Cancelled("the chief ended the job");
        if (NeedsRepair()) return false;
        const Deadline wake = std::min({deadline_, next_report_, Now() + kStopInterval});
        if (!context_.changed.WaitUntil(context_.mutex, wake) && Now() < next_report_) break;
      }
    }
    if (!EndsStepFirst()) RETURN_IF_ERROR(CheckStop());
    TellOfLateStep();
    if (Now() < std::min(deadline_, next_report_)) continue;
    ReportWait();
    if (Now() >= deadline_) {
      std::string peers;
      return DeadlineExceeded("no answer within ", FormatDuration(context_.options.patience), ": ",
                              Awaited(peers));
    }
    next_report_ = Now() + context_.options.report_every;
  }
}

std::string RemoteClient::Awaited(std::string& peers) {
  MutexLock lock(context_.mutex);
  const std::string what = context_.step.pull ? std::string("variables")
                                              : StrCat("the answer to step ", context_.step.step);
  std::vector<std::string> names, described;
  for (auto& link : links_) {
    const Link::Part part = link->part();
    if (part == Link::Part::kAnswered) continue;
    const bool failed = part == Link::Part::kDown || part == Link::Part::kRefused;
    names.push_back(link->name());
    described.push_back(failed ? StrCat(link->name(), ": ", Message(link->why())) : link->name());
  }
  peers += absl::StrJoin(names, ", ");
  return StrCat(rpc::TaskName(context_.options.identity), " waits for ", what, " from ",
                absl::StrJoin(described, ", "),
                context_.missing.empty()
                    ? ""
                    : StrCat("; the first step waits until ", context_.missing, " has started"));
}

void RemoteClient::ReportWait() {
  std::string peers;
  const std::string message = Awaited(peers);
  links_[0]->Poll();  // so that the next report is up to date
  Say(state::PeerEvent::Kind::kWaiting, peers, message);
}

bool RemoteClient::StopRequested() const {
  return context_.options.stop_requested && context_.options.stop_requested();
}

// After a request to stop, wait for the step where possible: abandoning the step could close
// connections that the chief needs for its last copy, and would lose part of an asynchronous
// contribution.
bool RemoteClient::EndsStepFirst() {
  // A worker's synchronous step may depend on other tasks that are also stopping.
  if ((!context_.options.chief && synchronous()) || !StopRequested()) return false;
  if (stop_seen_ == Deadline{}) stop_seen_ = Now();
  if (Now() - stop_seen_ >= context_.options.stop_patience) return false;
  MutexLock lock(context_.mutex);
  const bool whole = std::ranges::none_of(
      links_, [](const auto& link) { return link->part() == Link::Part::kDown; });
  return whole && context_.step.active && !context_.step.pull;
}

// Calls on_late_step at most once per period in which servers are shutting down. The callback may
// replace the state, so the caller must check the links again.
void RemoteClient::TellOfLateStep() {
  if (!context_.options.chief || !synchronous() || !context_.options.on_late_step) return;
  if (EndingServers().empty()) {
    ending_since_ = {};
    return;
  }
  if (ending_since_ == Deadline{}) ending_since_ = Now();
  if (ending_since_ == kTold || Now() - ending_since_ < context_.options.stop_patience) return;
  ending_since_ = kTold;
  const Deadline deadline = deadline_;
  context_.options.on_late_step();
  deadline_ = deadline;  // the deadline of this step
}

Status RemoteClient::CheckStop() {
  if (!StopRequested()) return OkStatus();
  std::string peers;
  return Cancelled("asked to stop while ", Awaited(peers));
}

}  // namespace tfjob::ps
