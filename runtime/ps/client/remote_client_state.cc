// Implements the client's operations on the whole state (filling and copying it), and how the
// client finishes the job.
#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "absl/strings/str_join.h"
#include "runtime/ps/client/remote_client.h"
#include "runtime/ps/limits.h"
#include "runtime/ps/rate_record.h"
#include "runtime/ps/wire.h"

namespace tfjob::ps {
namespace {

constexpr Duration kFinishPatience{20s};
constexpr Duration kFinishInterval{200ms};
constexpr Duration kWithdrawTimeout{2s};

// Returns true if another round of repair cannot correct the error.
bool IsLasting(const Status& status) {
  return absl::IsInvalidArgument(status) || absl::IsPermissionDenied(status);
}

// Returns a lasting error, if there is one; otherwise returns the first error.
Status Worst(const std::vector<Status>& statuses) {
  Status worst;
  for (const Status& status : statuses) {
    if (IsLasting(status)) return status;
    if (worst.ok()) worst = status;
  }
  return worst;
}

}  // namespace

std::vector<size_t> RemoteClient::AllServers() const {
  std::vector<size_t> all(links_.size());
  std::iota(all.begin(), all.end(), size_t{0});
  return all;
}

void RemoteClient::ReportTransfer(const char* doing, const std::vector<size_t>& servers) {
  std::vector<std::string> names, described;
  for (size_t i : servers) {
    names.push_back(links_[i]->name());
    described.push_back(StrCat(links_[i]->name(), " (", links_[i]->DescribeTransfer(), ")"));
  }
  Say(state::PeerEvent::Kind::kWaiting, absl::StrJoin(names, ", "),
      StrCat(rpc::TaskName(context_.options.identity), " ", doing, " ",
             absl::StrJoin(described, ", ")));
}

Status RemoteClient::FillFromChief(const std::vector<size_t>& servers) {
  if (!context_.options.provide_state) {
    return FailedPrecondition("the chief has no state to fill servers with");
  }
  const std::string names = absl::StrJoin(
      servers, ", ", [&](std::string* out, size_t i) { out->append(links_[i]->name()); });
  Say(state::PeerEvent::Kind::kRestoring, names, StrCat("the chief fills ", names));
  ASSIGN_OR_RETURN(state::Snapshot snapshot, context_.options.provide_state());
  // In asynchronous mode, the other servers keep their state, and with it their rate.
  if (!synchronous()) {
    const std::optional<state::LearningRate> rate = RateOfOthers();
    if (rate) snapshot.learning_rate = rate;
  }
  Status status = Fill(servers, snapshot);
  if (!status.ok()) {
    Say(state::PeerEvent::Kind::kWaiting, names,
        StrCat("the chief could not fill ", names, ", and tries again: ", Message(status)));
  }
  // Ignore other errors: if a server was lost during the fill, the next round of repair handles the
  // loss.
  return IsLasting(status) ? status : OkStatus();
}

std::optional<state::LearningRate> RemoteClient::RateOfOthers() const {
  if (const std::optional<state::LearningRate> own = learning_rate()) return own;
  // This process has replaced a chief that may have set a rate.
  for (size_t i = 0; i < states_.size(); ++i) {
    if (known_[i] && states_[i].ready && states_[i].learning_rate) return states_[i].learning_rate;
  }
  return std::nullopt;
}

void RemoteClient::SetLearningRate(const state::LearningRate& rate) {
  MutexLock lock(context_.mutex);
  context_.learning_rate = rate;
}

std::optional<state::LearningRate> RemoteClient::learning_rate() const {
  MutexLock lock(context_.mutex);
  return context_.learning_rate;
}

Status RemoteClient::Fill(const std::vector<size_t>& servers, const state::Snapshot& snapshot) {
  RETURN_IF_ERROR(state::CheckFits(snapshot, context_.options.definition.state));
  // An epoch must never be reused, because tasks recognise a new state only by its epoch. Adding 1
  // to the highest known epoch is not enough, since a restarted server or chief does not know the
  // earlier epochs. The new epoch is therefore at least the current time (NewIncarnation).
  int64_t epoch = epoch_;
  for (size_t i : servers) epoch = std::max(epoch, states_[i].epoch);
  epoch = std::max(epoch + 1, rpc::NewIncarnation());
  SetHolding(false);  // the end of a state also ends its hold
  const std::vector<Status> statuses = InParallel(
      servers, [&](size_t i) { return links_[i]->Fill(snapshot, epoch); },
      [this](const std::vector<size_t>& left) { ReportTransfer("fills", left); });
  for (size_t k = 0; k < servers.size(); ++k) {
    if (!statuses[k].ok()) continue;
    // Keep the incarnation that the server has reported, because a new ps 0 learns it from this
    // task.
    RemoteState& filled = states_[servers[k]];
    filled.ready = true;
    filled.epoch = epoch;
    filled.step = snapshot.global_step;
    filled.learning_rate = snapshot.learning_rate;
    filled.fingerprint = StrCat(fingerprint_);
    filled.servers = static_cast<int64_t>(links_.size());
  }
  return Worst(statuses);
}

Status RemoteClient::Restore(const state::Snapshot& snapshot) {
  BeginWait();
  RETURN_IF_ERROR(Worst(InParallel(
      AllServers(), [this](size_t i) { return RepairLink(i); },
      [this](const std::vector<size_t>&) { ReportWait(); })));
  RETURN_IF_ERROR(Fill(AllServers(), snapshot));
  // The caller reads the values with WaitReady.
  step_ = snapshot.global_step;
  MutexLock lock(context_.mutex);
  context_.learning_rate = snapshot.learning_rate;
  return OkStatus();
}

// Returns a snapshot that has memory for all variables except tables.
state::Snapshot RemoteClient::EmptySnapshot() const {
  const Definition& definition = context_.options.definition;
  state::Snapshot snapshot;
  for (const state::Variable& variable : definition.state.variables) {
    state::VariableState& copy = snapshot.variables.emplace_back();
    if (IsTable(definition, static_cast<int>(snapshot.variables.size()) - 1)) continue;
    copy.value = Tensor(variable.dtype, variable.shape);
    const size_t slots = state::SlotsOf(variable, definition.state.optimizer).size();
    while (copy.slots.size() < slots) copy.slots.emplace_back(variable.dtype, variable.shape);
  }
  return snapshot;
}

StatusOr<state::Snapshot> RemoteClient::TakeSnapshot() {
  const Definition& definition = context_.options.definition;
  state::Snapshot snapshot = EmptySnapshot();
  BeginWait();
  bool repaired = false;
  for (;;) {
    {
      MutexLock lock(context_.mutex);
      if (!context_.failure.ok()) return context_.failure;
    }
    snapshot.ledger.clear();
    std::shared_ptr<CopiedTables> tables;
    if (!definition.tables.empty()) tables = std::make_shared<CopiedTables>(gate_, links_.size());
    Status status = TryCopy(snapshot, tables.get());
    if (status.ok()) {
      for (const int v : definition.tables) {
        const state::Variable& variable = definition.state.variables[static_cast<size_t>(v)];
        snapshot.variables[static_cast<size_t>(v)].streamed =
            ValuesOf(tables, v, state::SlotsOf(variable, definition.state.optimizer).size());
      }
      return snapshot;
    }
    // Drop the copies before Repair, which may fill the servers again: a server may lack memory for
    // both the copies and a new state. No thread reads the copies any more.
    tables.reset();
    if (Now() >= deadline_ || IsLasting(status)) return status;
    {
      // Reset the links, so that Repair queries every server before the next attempt. In a
      // synchronous step, Repair queries all servers anyway.
      MutexLock lock(context_.mutex);
      if (context_.finished) return Cancelled("the chief ended the job");
      if (!context_.step.active) {
        for (auto& link : links_) link->Reset();
      }
    }
    if (Now() >= next_report_) {
      next_report_ = Now() + kReportInterval;
      Say(state::PeerEvent::Kind::kWaiting, "",
          StrCat("the copy of the state waits: ", Message(status)));
    }
    // Call Repair once even if asked to stop, because the abandoned step may have closed
    // connections that the last copy needs.
    if (std::exchange(repaired, true)) RETURN_IF_ERROR(CheckStop());
    RETURN_IF_ERROR(Repair());
  }
}

Status RemoteClient::TryCopy(state::Snapshot& snapshot, CopiedTables* tables) {
  // Only the next copy deals with servers that start to shut down during this copy.
  const std::vector<size_t> ending = EndingServers();
  Status status;
  if (synchronous()) {
    // The hold keeps all servers at one step during the copy. A failed release means that the hold
    // ended early, so the copy may mix several steps and is not returned.
    RETURN_IF_ERROR(links_[0]->Request({.type = wire::kHold}, "", kRequestTimeout).status());
    SetHolding(true);
    status = Copy(snapshot, tables);
    // If a server is shutting down, keep the hold after the copy, because a later step would be
    // lost with that server. The hold ends when the servers are filled again.
    const bool keep = status.ok() && !ending.empty();
    if (!keep) SetHolding(false);
    const uint16_t flags = keep ? wire::kEnding : 0;
    Status released =
        links_[0]->Request({.type = wire::kRelease, .flags = flags}, "", kRequestTimeout).status();
    if (status.ok()) status = released;
  } else {
    status = Copy(snapshot, tables);
  }
  if (!status.ok()) {
    // A copy freezes an asynchronous server that is shutting down. The server stays frozen until
    // the session that requested the copy is closed.
    for (size_t i : EndingServers()) {
      if (!synchronous()) links_[i]->Disconnect();
    }
    return status;
  }
  for (size_t i : ending) links_[i]->SayTaken();
  return OkStatus();
}

std::vector<size_t> RemoteClient::EndingServers() {
  std::vector<size_t> ending = AllServers();
  std::erase_if(ending, [this](size_t i) { return !links_[i]->Ending(); });
  return ending;
}

void RemoteClient::SetHolding(bool holding) {
  MutexLock lock(context_.mutex);
  context_.holding = holding;
}

Status RemoteClient::Copy(state::Snapshot& snapshot, CopiedTables* tables) {
  // Do not start a copy that cannot be completed. Its only effect would be that the servers that
  // are shutting down stop applying updates.
  {
    MutexLock lock(context_.mutex);
    for (const auto& link : links_) {
      if (link->part() != Link::Part::kDown) continue;
      return Unavailable(link->name(), ": not connected");
    }
  }
  // Start all copies before waiting for the first one, so that the servers send in parallel.
  Status status;
  size_t begun = 0;
  for (; begun < links_.size() && status.ok(); ++begun) {
    const StatusOr<uint64_t> number = links_[begun]->BeginCopy(snapshot);
    status = number.status();
    if (number.ok() && tables != nullptr) tables->SetNumber(begun, *number);
  }
  // Wait for every copy that was started, because a copy in progress writes into the snapshot.
  if (!status.ok()) --begun;
  std::vector<size_t> copying(begun);
  std::iota(copying.begin(), copying.end(), size_t{0});
  std::vector<Link::Answer> answers(begun);
  const auto await = [&](size_t i) -> Status {
    ASSIGN_OR_RETURN(answers[i], links_[i]->AwaitCopy());
    return OkStatus();
  };
  const Status copied = Worst(InParallel(
      copying, await, [this](const std::vector<size_t>& left) { ReportTransfer("copies", left); }));
  if (!status.ok()) return status;
  RETURN_IF_ERROR(copied);
  snapshot.global_step = answers[0].header.step;  // ps 0 owns the step
  for (const Link::Answer& answer : answers) snapshot.ledger += answer.body;
  snapshot.learning_rate = TakeRate(snapshot.ledger);
  // The servers do not know yet what the chief has set since its last contribution.
  if (const std::optional<state::LearningRate> own = learning_rate()) snapshot.learning_rate = own;
  return OkStatus();
}

Status RemoteClient::Leave() {
  return SayLeave({.type = wire::kLeave}, kRequestTimeout);
}

Status RemoteClient::Withdraw() {
  return SayLeave({.type = wire::kLeave, .flags = wire::kEnding}, kWithdrawTimeout);
}

Status RemoteClient::SayLeave(rpc::FrameHeader header, Duration timeout) {
  // Notify every server, even if one of them cannot be reached.
  const auto leave = [&](size_t i) { return links_[i]->Request(header, "", timeout).status(); };
  return Worst(InParallel(AllServers(), leave, [](const std::vector<size_t>&) {}));
}

Status RemoteClient::Finish() {
  return TellAll(wire::kFinish, "");
}

Status RemoteClient::Fail(const Status& failure) {
  {
    MutexLock lock(context_.mutex);
    if (!context_.failure.ok() && !context_.options.chief) return OkStatus();
  }
  return TellAll(wire::kFail, std::string(Message(failure)));
}

Status RemoteClient::TellAll(uint16_t type, const std::string& body) {
  BeginWait();
  deadline_ = std::min(deadline_, Now() + kFinishPatience);
  // Retry servers that cannot be reached: a server that is restarting would otherwise wait for the
  // chief forever.
  std::vector<bool> told(links_.size()), named(links_.size());
  for (;;) {
    const bool last = Now() >= deadline_ || !CheckStop().ok();
    std::vector<size_t> untold = AllServers();
    std::erase_if(untold, [&](size_t i) { return told[i]; });
    const std::vector<Status> statuses = InParallel(
        untold, [&](size_t i) { return TellEnd(i, type, body); },
        [](const std::vector<size_t>&) {});
    for (size_t k = 0; k < untold.size(); ++k) {
      const size_t i = untold[k];
      const Status& status = statuses[k];
      told[i] = status.ok();
      if (status.ok() || (named[i] && !last)) continue;
      named[i] = true;
      Say(last ? state::PeerEvent::Kind::kLost : state::PeerEvent::Kind::kWaiting, StrCat("ps ", i),
          StrCat(last ? "could not report the end of the job to "
                      : "cannot yet report the end of the job to ",
                 links_[i]->name(), ": ", Message(status)));
    }
    if (last || std::ranges::all_of(told, std::identity())) return OkStatus();
    MutexLock lock(context_.mutex);
    context_.changed.WaitUntil(context_.mutex, Now() + kFinishInterval);
  }
}

Status RemoteClient::TellEnd(size_t server, uint16_t type, const std::string& body) {
  Status up = RepairLink(server);
  // Ignore FailedPrecondition, because the server must exit even if it has other variables.
  if (!up.ok() && !absl::IsFailedPrecondition(up)) return up;
  Status told = links_[server]->Request({.type = type}, body, kRequestTimeout).status();
  return absl::IsUnavailable(told) && !up.ok() ? up : told;
}

std::vector<state::PeerState> RemoteClient::Peers() {
  std::vector<state::PeerState> peers;
  for (auto& link : links_) peers.push_back(link->Describe());
  MutexLock lock(context_.mutex);
  const rpc::Identity& self = context_.options.identity;
  const std::string own = state::PeerOf(self.task_type, self.task_index).task;
  for (const state::PeerState& member : context_.members.list()) {
    if (member.task != own && member.role == state::PeerRole::kTrains) peers.push_back(member);
  }
  return peers;
}

}  // namespace tfjob::ps
