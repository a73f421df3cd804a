// Implements how the client recovers: connects and queries servers in parallel, lets the chief
// refill them, and restarts the step.
#include <algorithm>
#include <functional>
#include <system_error>

#include "runtime/ps/client/remote_client.h"
#include "runtime/ps/limits.h"
#include "runtime/ps/wire.h"

namespace tfjob::ps {
namespace {

// A long timeout causes no delay, because the connection is established as soon as the server is
// up.
constexpr Duration kConnectTimeout{3s};

}  // namespace

// ---- many servers at once

// Runs act(i) for every server in `servers`, each on its own thread, so that an unresponsive server
// does not delay the others. Whenever a report is due, calls `report` with the servers that are not
// done.
std::vector<Status> RemoteClient::InParallel(
    const std::vector<size_t>& servers, const std::function<Status(size_t)>& act,
    const std::function<void(const std::vector<size_t>&)>& report) {
  std::vector<Status> results(servers.size());
  std::vector<Thread> threads;
  std::vector<size_t> pending = servers;  // guarded by context_.mutex
  const auto end = [&](size_t k, Status result) {
    results[k] = std::move(result);
    MutexLock lock(context_.mutex);
    std::erase(pending, servers[k]);
    context_.changed.NotifyAll();
  };
  for (size_t k = 0; k < servers.size(); ++k) {
    try {
      threads.emplace_back("ps-repair", [&, k] { end(k, act(servers[k])); });
    } catch (const std::system_error&) {
      end(k, act(servers[k]));  // no thread can be started
    }
  }
  for (;;) {
    const std::vector<size_t> left = AwaitSome(pending);
    if (left.empty()) break;
    if (Now() >= next_report_) {
      next_report_ = Now() + context_.options.report_every;
      report(left);
    }
    if (EndsWaits()) Interrupt(true);
  }
  for (Thread& thread : threads) thread.Join();
  Interrupt(false);
  return results;
}

// Waits until `pending` is empty, a report is due, or kStopInterval has passed. Returns a copy of
// `pending`.
std::vector<size_t> RemoteClient::AwaitSome(const std::vector<size_t>& pending) {
  const Deadline wake = std::min(next_report_, Now() + kStopInterval);
  MutexLock lock(context_.mutex);
  while (!pending.empty() && context_.changed.WaitUntil(context_.mutex, wake)) {
  }
  return pending;
}

// After a request to stop, the chief still copies the state once more between two steps, and needs
// the servers for this copy.
bool RemoteClient::EndsWaits() {
  {
    MutexLock lock(context_.mutex);
    if (!context_.step.active) return false;
  }
  return StopRequested() && !EndsStepFirst();
}

void RemoteClient::Interrupt(bool on) {
  MutexLock lock(context_.mutex);
  context_.interrupted = on;
  context_.changed.NotifyAll();
}

// ---- repairing

// Runs one round of repair: connects links that are down, queries servers whose state is not known,
// lets the chief fill empty servers, and restarts the step where necessary. Returns only errors
// that another round cannot correct.
Status RemoteClient::Repair() {
  Status refusal = PauseAfterRefusals();
  const std::vector<Status> statuses = RepairLinks();
  for (size_t i = 0; i < links_.size(); ++i) {
    known_[i] = statuses[i].ok();
    if (absl::IsFailedPrecondition(statuses[i]) || absl::IsUnimplemented(statuses[i]) ||
        absl::IsDataLoss(statuses[i])) {
      refusal = statuses[i];
    }
  }
  if (refusal.ok() && absl::IsFailedPrecondition(registration_)) refusal = registration_;
  // A refusal may come from an earlier server at the same address that is about to exit. It is
  // therefore final only after refusal_patience.
  if (refusal.ok()) {
    refused_since_ = {};
  } else if (refused_since_ == Deadline{}) {
    refused_since_ = Now();
  } else if (Now() - refused_since_ >= context_.options.refusal_patience) {
    return refusal;
  }
  RETURN_IF_ERROR(synchronous() ? ContinueSynchronous() : ContinueAsynchronous());
  MutexLock lock(context_.mutex);
  if (NeedsRepair() && !context_.finished && context_.failure.ok()) {
    context_.changed.WaitUntil(context_.mutex, Now() + kRetryInterval);
  }
  return OkStatus();
}

// If a server has refused this task's part of the step, waits before the step is repeated. Without
// this pause, the requests would follow each other as fast as the server answers. Returns the
// refusal if only this task or its training file can be the cause.
Status RemoteClient::PauseAfterRefusals() {
  Status lasting;
  bool refused = false;
  const Deadline end = Now() + kRetryInterval;
  MutexLock lock(context_.mutex);
  for (const auto& link : links_) {
    if (link->part() != Link::Part::kRefused) continue;
    refused = true;
    const Status& why = link->why();
    if (absl::IsInvalidArgument(why) || absl::IsPermissionDenied(why) ||
        absl::IsResourceExhausted(why)) {
      lasting = Annotate(why, link->name());
    }
  }
  while (refused && Now() < end && !context_.finished && context_.failure.ok()) {
    context_.changed.WaitUntil(context_.mutex, end);
  }
  return lasting;
}

std::vector<Status> RemoteClient::RepairLinks() {
  std::vector<Status> statuses(links_.size());
  std::vector<size_t> needed;
  {
    MutexLock lock(context_.mutex);
    for (size_t i = 0; i < links_.size(); ++i) {
      const Link::Part part = links_[i]->part();
      const bool runs = part == Link::Part::kAwaited || part == Link::Part::kAnswered;
      // In synchronous mode, a server that has answered is also queried: it may have been refilled
      // in the meantime because another server lost its state.
      if (!runs || synchronous()) needed.push_back(i);
    }
  }
  const std::vector<Status> repaired = InParallel(
      needed, [this](size_t i) { return RepairLink(i); },
      [this](const std::vector<size_t>&) { ReportWait(); });
  for (size_t k = 0; k < needed.size(); ++k) statuses[needed[k]] = repaired[k];
  return statuses;
}

// Connects the link if it is down, and queries the server's state.
Status RemoteClient::RepairLink(size_t server) {
  Link& link = *links_[server];
  bool down = false;
  {
    MutexLock lock(context_.mutex);
    down = link.part() == Link::Part::kDown;
  }
  const auto left = std::chrono::duration_cast<Duration>(deadline_ - Now());
  if (down) RETURN_IF_ERROR(link.Connect(std::clamp(left, kRetryInterval, kConnectTimeout)));
  ASSIGN_OR_RETURN(states_[server], link.Query(kRequestTimeout));
  const RemoteState& state = states_[server];
  const auto servers = static_cast<int64_t>(links_.size());
  if (state.ready && state.servers != servers) {
    return FailedPrecondition(link.name(), " holds a part of what ", state.servers,
                              " parameter servers share, but this task's TF_CONFIG has ", servers,
                              ": the job was scaled; `tfjob restart` gives all tasks the new ",
                              "number");
  }
  if (state.ready && state.fingerprint != StrCat(fingerprint_)) {
    return FailedPrecondition(link.name(), " holds other variables, another optimizer or mode ",
                              "than this task has: give all tasks the same training file");
  }
  return OkStatus();
}

bool RemoteClient::Registered() {
  // If ps 0 was restored from a checkpoint, other servers may know a higher incarnation than ps 0
  // does.
  int64_t own = 0, heard = 0;
  for (size_t i = 1; i < links_.size(); ++i) {
    if (known_[i]) heard = std::max(heard, states_[i].incarnation);
  }
  {
    MutexLock lock(context_.mutex);
    own = context_.incarnation;
    // In synchronous mode, every answer contains the position.
    const bool current = synchronous() || registered_epoch_ == states_[0].epoch;
    if (links_[0]->registered() && own >= heard && current) return true;
  }
  if (!known_[0] || !states_[0].ready) return false;
  // A server that has not been queried may know a predecessor of this process. ps 0 might then
  // issue the predecessor's incarnation again.
  if (own == 0 && !std::ranges::all_of(known_, std::identity())) return false;
  const auto ask = [&](size_t) -> Status {
    ASSIGN_OR_RETURN(const Link::Answer answer,
                     links_[0]->Request({.type = wire::kRegister, .step = own, .value = heard}, "",
                                        kRequestTimeout));
    MutexLock lock(context_.mutex);
    context_.incarnation = answer.header.step;
    links_[0]->set_registered();
    if (synchronous() || registered_epoch_ == states_[0].epoch) return OkStatus();
    registered_epoch_ = states_[0].epoch;
    TakePosition(answer.header.value);
    return OkStatus();
  };
  registration_ = InParallel({0}, ask, [this](const std::vector<size_t>&) { ReportWait(); })[0];
  return registration_.ok();
}

void RemoteClient::TakePosition(int64_t position) {
  Step& step = context_.step;
  // No batch is lost if the state contains all batches before the one in flight. The state may also
  // contain the batch in flight.
  const bool has_in_flight = step.active && step.drawn > 0 && position == step.drawn;
  if (position == reported_position_ || has_in_flight) return;
  position_ = position;
  step.rewound = step.active && !step.pull && step.drawn > 0;
  step.drawn = 0;
}

Status RemoteClient::ContinueAsynchronous() {
  std::vector<size_t> empty;
  for (size_t i = 0; i < links_.size(); ++i) {
    if (known_[i] && !states_[i].ready) empty.push_back(i);
  }
  // Fill only the empty servers. The other servers keep their part, because in asynchronous mode
  // shards may be at different steps.
  if (!empty.empty() && context_.options.chief) RETURN_IF_ERROR(FillFromChief(empty));
  if (!Registered()) return OkStatus();
  MutexLock lock(context_.mutex);
  if (!context_.learning_rate) context_.learning_rate = states_[0].learning_rate;
  if (!context_.step.active) return OkStatus();
  const auto runs = [](const auto& link) {
    const Link::Part part = link->part();
    return part == Link::Part::kAwaited || part == Link::Part::kAnswered;
  };
  // If another server's values were requested before those of ps 0, they may be much older than the
  // step that ps 0 reports.
  if (!runs(links_[0]) && std::ranges::any_of(links_, runs)) undated_ = true;
  for (size_t i = 0; i < links_.size(); ++i) {
    if (known_[i] && states_[i].ready && !runs(links_[i])) links_[i]->Start(states_[i].epoch);
  }
  return OkStatus();
}

Status RemoteClient::ContinueSynchronous() {
  // Decide only if the states of all servers are known, because a server that cannot be queried may
  // have another state.
  if (!std::ranges::all_of(known_, std::identity())) return OkStatus();
  auto usable = [&] {
    return std::ranges::all_of(states_, [&](const RemoteState& state) {
      return state.ready && state.epoch == states_[0].epoch;
    });
  };
  if (!usable()) {
    if (!context_.options.chief) return OkStatus();
    RETURN_IF_ERROR(FillFromChief(AllServers()));
    // If a server was lost during the fill, the next round fills all servers again.
    if (!usable()) return OkStatus();
  }
  if (!Registered()) return OkStatus();
  const bool other = epoch_ != states_[0].epoch;
  // A new epoch means that the state was replaced: the gradients of this or the next step were
  // computed from values that no longer exist.
  if (other && epoch_ != 0) rolled_back_ = true;
  epoch_ = states_[0].epoch;
  MutexLock lock(context_.mutex);
  if (other) context_.learning_rate = states_[0].learning_rate;
  Step& step = context_.step;
  if (!step.active || (step.rows && rolled_back_)) return OkStatus();
  if (rolled_back_ && !step.pull) {
    step.pull = true;
    step.unmarked = 0;
  }
  // A new sequence number distinguishes the answers of the new epoch from late answers of the
  // old one.
  if (other) ++step.sequence;
  for (auto& link : links_) {
    const Link::Part part = link->part();
    const bool runs = part == Link::Part::kAwaited || part == Link::Part::kAnswered;
    if (other || !runs) link->Start(epoch_);
  }
  return OkStatus();
}

}  // namespace tfjob::ps
