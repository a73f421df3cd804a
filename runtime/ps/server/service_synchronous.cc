// Implements the service's part of synchronous steps: passes messages between the synchronizer and
// the sessions, and reports the tasks that a step is waiting for.
#include <nlohmann/json.hpp>

#include "absl/strings/str_join.h"
#include "runtime/ps/server/coordinator_link.h"
#include "runtime/ps/server/service.h"
#include "runtime/ps/server/synchronizer.h"
#include "runtime/ps/wire.h"

namespace tfjob::ps {

void Service::Leave(const protocol::Worker& worker, int64_t incarnation, bool for_good) {
  synchronizer_->Leave(worker, incarnation, for_good);
}

Status Service::SetLearningRate(const state::LearningRate& rate) {
  ASSIGN_OR_RETURN(const std::shared_ptr<Store> store, ReadyStore());
  const bool news = store->learning_rate() != rate;
  RETURN_IF_ERROR(store->SetLearningRate(rate));
  if (store->definition().mode == Mode::kSynchronous) {
    synchronizer_->SetLearningRate(store);
  } else {
    store->UseLearningRate(rate.rate);
  }
  // Workers show the rate, and read it only from the state of ps 0.
  if (news && index() == 0) SendState(/*all=*/true);
  return OkStatus();
}

void Service::Hold(PeerSession& session, uint64_t sequence) {
  if (synchronous_ && index() == 0) {
    return synchronizer_->Hold(session.worker(), session.incarnation(), sequence);
  }
  session.ReplyTo(sequence, FailedPrecondition("only ps 0 of a synchronous job can be held"));
}

void Service::Renew(const protocol::Worker& worker) {
  synchronizer_->Renew(worker);
}

Status Service::Release(const protocol::Worker& worker, bool keep) {
  if (keep ? synchronizer_->Holds(worker) : synchronizer_->Release(worker)) return OkStatus();
  return Aborted("the hold had ended: the copy may mix several steps");
}

void Service::FromParticipant(const PeerSession& session, const std::string& message) {
  const rpc::Identity& peer = session.peer();
  // ps 0 reports to its coordinator directly. Tasks other than servers do not take part in this
  // protocol.
  if (peer.task_type != "ps" || peer.task_index < 1) return;
  synchronizer_->FromParticipant(peer.task_index, session.incarnation(), message);
}

std::string Service::coordinator() {
  MutexLock lock(mutex_);
  return coordinator_;
}

std::unique_ptr<CoordinatorLink> Service::LinkToCoordinator(Synchronizer& synchronizer) {
  return std::make_unique<CoordinatorLink>(
      synchronizer, *options_.connector, watch_,
      CoordinatorLink::Options{
          .address = coordinator(),
          .self = options_.identity,
          .on_event = [this](const state::PeerEvent& event) { TellOfCoordinator(event); },
          .liveness = options_.liveness});
}

// Reports an event of the link to ps 0, except after the end of the job: ps 0 then also exits,
// which is not a loss.
void Service::TellOfCoordinator(const state::PeerEvent& event) {
  {
    MutexLock lock(mutex_);
    if (finished_ || stopped_) return;
  }
  if (options_.on_event) options_.on_event(event);
}

void Service::SendToServer(int server, std::string message) {
  MutexLock lock(mutex_);
  auto found = sessions_.find({"ps", server});
  if (found == sessions_.end()) return;  // the protocol repeats the message
  found->second->connection().Send({.type = wire::kCoordinator}, std::move(message));
}

void Service::Forget(const std::shared_ptr<Store>& store) {
  MutexLock lock(mutex_);
  // Check the store, because the chief may have filled the server again since the protocol
  // abandoned `store`.
  if (store_ == store) store_ = nullptr;
  changed_.NotifyAll();
}

void Service::TellWait(int64_t step, const std::vector<protocol::Worker>& awaited) {
  if (!options_.on_event || awaited.empty()) return;
  std::vector<std::string> peers, described;
  {
    MutexLock lock(mutex_);
    for (const protocol::Worker& worker : awaited) {
      auto found = sessions_.find(worker);
      const std::string address = found == sessions_.end() ? "" : found->second->address();
      peers.push_back(protocol::ToString(worker));
      described.push_back(StrCat(protocol::ToString(worker), " (", address, ")"));
    }
  }
  options_.on_event({.kind = state::PeerEvent::Kind::kWaiting,
                     .peer = absl::StrJoin(peers, ", "),
                     .message = StrCat("step ", step, " waits for gradients from ",
                                       absl::StrJoin(described, ", "))});
}

void Service::TellGathering(const std::vector<protocol::Worker>& missing, Duration left) {
  if (!options_.on_event) return;
  options_.on_event({.kind = state::PeerEvent::Kind::kWaiting,
                     .peer = protocol::NamesOf(missing),
                     .address = "",
                     .message = StrCat("the first step waits until ", protocol::NamesOf(missing),
                                       " has started, for at most ", FormatDuration(left),
                                       " more (strategy.start_timeout_secs)")});
}

void Service::TellAbsent(const std::vector<protocol::Worker>& absent) {
  if (!options_.on_event) return;
  options_.on_event({.kind = state::PeerEvent::Kind::kWaiting,
                     .peer = protocol::NamesOf(absent),
                     .address = "",
                     .message = StrCat("training goes on without ", protocol::NamesOf(absent),
                                       ", which did not start within "
                                       "strategy.start_timeout_secs")});
}

}  // namespace tfjob::ps
