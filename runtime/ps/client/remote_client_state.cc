// Implements the client's operations on the whole state (filling, copying) and the end of the job.
#include <algorithm>
#include <functional>
#include <utility>

#include "absl/strings/str_join.h"
#include "runtime/ps/client/remote_client.h"
#include "runtime/ps/limits.h"
#include "runtime/ps/wire.h"

namespace tfjob::ps {
namespace {

constexpr Duration kFinishPatience{20s};
constexpr Duration kFinishInterval{200ms};
constexpr Duration kTransferTimeout{600s};  // the lease ends a transfer to a dead peer much earlier

}  // namespace

Status RemoteClient::FillFromChief(const std::vector<size_t>& servers) {
  if (!context_.options.provide_state) {
    return FailedPrecondition("the chief has no state to fill servers with");
  }
  const std::string names = absl::StrJoin(
      servers, ", ", [&](std::string* out, size_t i) { out->append(links_[i]->name()); });
  Say(state::PeerEvent::Kind::kRestoring, names, StrCat("the chief fills ", names));
  ASSIGN_OR_RETURN(state::Snapshot snapshot, context_.options.provide_state());
  Status status = Fill(servers, snapshot);
  // Other errors are ignored: if a server was lost meanwhile, the next round of repair handles it.
  return absl::IsInvalidArgument(status) ? status : OkStatus();
}

Status RemoteClient::Fill(const std::vector<size_t>& servers, const state::Snapshot& snapshot) {
  RETURN_IF_ERROR(state::CheckFits(snapshot, context_.options.definition.state));
  // An epoch must never be reused: a task tells a new state from the one it knows only by the
  // epoch. Adding 1 to the highest known epoch is not enough, since a restarted server or chief
  // does not know the earlier epochs. The new epoch is therefore also no less than the current
  // time (NewIncarnation).
  int64_t epoch = epoch_;
  for (size_t i : servers) epoch = std::max(epoch, states_[i].epoch);
  epoch = std::max(epoch + 1, rpc::NewIncarnation());
  for (size_t i : servers) {
    RETURN_IF_ERROR(links_[i]->Fill(snapshot, epoch, kTransferTimeout));
    states_[i] = {.ready = true,
                  .epoch = epoch,
                  .step = snapshot.global_step,
                  .fingerprint = StrCat(fingerprint_),
                  .servers = static_cast<int64_t>(links_.size())};
  }
  return OkStatus();
}

Status RemoteClient::Restore(const state::Snapshot& snapshot) {
  BeginWait();
  std::vector<size_t> all;
  for (size_t i = 0; i < links_.size(); ++i) {
    RETURN_IF_ERROR(RepairLink(i));
    all.push_back(i);
  }
  RETURN_IF_ERROR(Fill(all, snapshot));
  // The caller reads the values with WaitReady.
  step_ = snapshot.global_step;
  return OkStatus();
}

StatusOr<state::Snapshot> RemoteClient::TakeSnapshot() {
  const Definition& definition = context_.options.definition;
  state::Snapshot snapshot;
  for (const state::Variable& variable : definition.state.variables) {
    snapshot.variables.push_back(state::VariableState::Initial(
        variable, definition.state.optimizer, Tensor(variable.dtype, variable.shape)));
  }
  BeginWait();
  bool repaired = false;
  for (;;) {
    snapshot.ledger.clear();
    Status status = TryCopy(snapshot);
    if (status.ok()) return snapshot;
    if (Now() >= deadline_) return status;
    {
      // Resets the links, so that Repair queries every server before the next attempt.
      MutexLock lock(context_.mutex);
      if (context_.finished) return Cancelled("the chief ended the job");
      for (auto& link : links_) link->Reset();
    }
    if (Now() >= next_report_) {
      next_report_ = Now() + kReportInterval;
      Say(state::PeerEvent::Kind::kWaiting, "",
          StrCat("the copy of the state waits: ", Message(status)));
    }
    // Calls Repair once even if asked to stop: the step that was given up may have closed
    // connections that the last copy needs.
    if (std::exchange(repaired, true)) RETURN_IF_ERROR(CheckStop());
    RETURN_IF_ERROR(Repair());
  }
}

Status RemoteClient::TryCopy(state::Snapshot& snapshot) {
  if (!synchronous()) return Copy(snapshot);
  // The hold keeps all servers at one step during the copy. A failed release means that the hold
  // ended early, so the copy may mix several steps and is not returned.
  RETURN_IF_ERROR(links_[0]->Request({.type = wire::kHold}, "", kRequestTimeout).status());
  SetHolding(true);
  Status status = Copy(snapshot);
  SetHolding(false);
  Status released = links_[0]->Request({.type = wire::kRelease}, "", kRequestTimeout).status();
  return status.ok() ? released : status;
}

void RemoteClient::SetHolding(bool holding) {
  MutexLock lock(context_.mutex);
  context_.holding = holding;
}

Status RemoteClient::Copy(state::Snapshot& snapshot) {
  // All copies begin before the first is awaited, so that the servers send at the same time.
  Status status;
  size_t begun = 0;
  for (; begun < links_.size() && status.ok(); ++begun) {
    status = links_[begun]->BeginCopy(snapshot);
  }
  // Every copy that began is awaited, because it writes into the snapshot.
  if (!status.ok()) --begun;
  for (size_t i = 0; i < begun; ++i) {
    Status copied = links_[i]->AwaitCopy(kTransferTimeout);
    if (status.ok()) status = copied;
  }
  return status;
}

Status RemoteClient::Leave() {
  Status status;
  // Tells every server, even if one of them cannot be reached.
  for (auto& link : links_) {
    Status left = link->Request({.type = wire::kLeave}, "", kRequestTimeout).status();
    if (status.ok()) status = left;
  }
  return status;
}

Status RemoteClient::Finish() {
  BeginWait();
  deadline_ = std::min(deadline_, Now() + kFinishPatience);
  // Retries servers that cannot be reached: a server that is restarting would come back empty and
  // wait for the chief forever.
  std::vector<bool> told(links_.size()), named(links_.size());
  for (;;) {
    const bool last = Now() >= deadline_ || !CheckStop().ok();
    for (size_t i = 0; i < links_.size(); ++i) {
      if (told[i]) continue;
      const Status status = TellEnd(i);
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

Status RemoteClient::TellEnd(size_t server) {
  Status up = RepairLink(server);
  // FailedPrecondition does not matter here: the server exits whatever variables it holds.
  if (!up.ok() && !absl::IsFailedPrecondition(up)) return up;
  Status told = links_[server]->Request({.type = wire::kFinish}, "", kRequestTimeout).status();
  return absl::IsUnavailable(told) && !up.ok() ? up : told;
}

std::vector<state::PeerState> RemoteClient::Peers() {
  std::vector<state::PeerState> peers;
  for (auto& link : links_) peers.push_back(link->Describe());
  MutexLock lock(context_.mutex);
  const rpc::Identity& self = context_.options.identity;
  const std::string own = state::PeerOf(self.task_type, self.task_index).task;
  for (const state::PeerState& member : context_.members) {
    if (member.task != own && member.role == state::PeerRole::kTrains) peers.push_back(member);
  }
  return peers;
}

}  // namespace tfjob::ps
