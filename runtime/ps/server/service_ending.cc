// Implements the shutdown of a server whose process was asked to stop, and the server's reports
// about tasks that are stopping or stuck.
#include <algorithm>

#include "runtime/ps/server/service.h"
#include "runtime/ps/server/synchronizer.h"
#include "runtime/ps/wire.h"

namespace tfjob::ps {

// ---- this server was asked to stop

void Service::End(Duration budget) {
  // Reserve part of the budget for the last messages to the peers.
  const SteadyTime end = SteadyNow() + budget;
  const SteadyTime deadline = end - std::min(kLastWords, budget / 4);
  {
    MutexLock lock(mutex_);
    ending_ = true;
    last_words_until_ = end;
  }
  SendState(/*all=*/true);
  {
    MutexLock lock(mutex_);
    while (NeededLocked() && changed_.WaitUntil(mutex_, deadline)) {
    }
    if (finished_) return;
  }
  Stop();
}

bool Service::NeededLocked() const {
  if (finished_ || stopped_ || chief_has_failed_ || store_ == nullptr) return false;
  if (taken_) return tables_kept_ > 0;
  for (const auto& [task, session] : sessions_) {
    if (task.type != "ps" && !endings_.contains(task)) return true;
  }
  return false;
}

void Service::OnCopyBegins(const PeerSession& session) {
  MutexLock lock(mutex_);
  copied_ = ending_;
  copier_ = &session;
  // In synchronous mode, the servers need not freeze, because the chief's hold suspends commits on
  // all of them.
  frozen_ = ending_ && !synchronous_;
}

std::optional<int64_t> Service::CountUnlessFrozen(Store& store, const protocol::Name& name,
                                                  int64_t drawn) {
  MutexLock lock(mutex_);  // no copy can start before the contribution is counted
  if (frozen_) return std::nullopt;
  return store.Count(name, drawn);
}

void Service::OnTaken() {
  MutexLock lock(mutex_);
  taken_ = copied_;
  changed_.NotifyAll();
}

void Service::OnTablesKept(int more) {
  MutexLock lock(mutex_);
  tables_kept_ += more;
  changed_.NotifyAll();
}

void Service::Unfreeze() {
  copier_ = nullptr;
  if (taken_) return;
  copied_ = frozen_ = false;
  for (const auto& [task, session] : sessions_) session->Resume();
}

void Service::SendState(bool all) {
  const Attendance attendance = synchronizer_->GetAttendance();
  MutexLock lock(mutex_);
  for (const auto& [task, session] : sessions_) {
    const PeerRole role = RoleOf(session->peer());
    if (role != PeerRole::kChief && !(all && role == PeerRole::kTrains)) continue;
    auto [header, body] = DescribeStateLocked(*session, attendance);
    session->connection().Send(header, std::move(body));
  }
}

// ---- tasks that are stopping or stuck

void Service::OnTaskEnding(const PeerSession& session) {
  {
    MutexLock lock(mutex_);
    endings_.insert(session.worker());
    changed_.NotifyAll();
  }
  Tell(state::PeerEvent::Kind::kEnding, session, "was asked to end and has left");
  // Clients read the list of tasks only from the state of ps 0.
  if (index() == 0) SendState(/*all=*/false);
}

void Service::TellOf(state::PeerEvent::Kind kind, const protocol::Worker& worker,
                     const std::string& message) {
  std::string address;
  {
    MutexLock lock(mutex_);
    auto found = sessions_.find(worker);
    if (found == sessions_.end()) return;  // the loss of the task is reported separately
    address = found->second->address();
    if (kind == state::PeerEvent::Kind::kStuck) {
      stuck_.insert(worker);
    } else {
      stuck_.erase(worker);
    }
  }
  if (!options_.on_event) return;
  const std::string name = protocol::ToString(worker);
  options_.on_event({.kind = kind,
                     .peer = name,
                     .address = address,
                     .message = StrCat(name, " (", address, ") ", message)});
}

void Service::TellLapse(int64_t step, const protocol::Lapse& lapse) {
  TellOf(
      state::PeerEvent::Kind::kStuck, lapse.worker,
      StrCat("is connected but has kept step ", step, " waiting for ", FormatDuration(lapse.waited),
             ": it is no longer waited for, and others compute what is missing"));
}

void Service::TellReturn(const protocol::Worker& worker) {
  TellOf(state::PeerEvent::Kind::kReturned, worker, "contributes again");
}

}  // namespace tfjob::ps
