// Implements how a server tracks the processes of the training tasks.
#include "runtime/ps/server/service.h"

namespace tfjob::ps {

void Service::Learn(const std::map<protocol::Worker, int64_t>& incarnations) {
  for (const auto& [task, incarnation] : incarnations) {
    incarnations_.Learn(task, incarnation);
    auto found = sessions_.find(task);
    if (found == sessions_.end()) continue;
    // Cancel the session rather than erase it, because the thread that serves the session owns it.
    // A process without an incarnation will get one that is higher than all those in the ledgers.
    const int64_t own = found->second->incarnation();
    if (own == 0 || own >= incarnations_.Newest(task)) continue;
    found->second->connection().Cancel(Aborted("a later start of the task is known"));
  }
}

StatusOr<Service::Registration> Service::RegisterProcess(const PeerSession& session, int64_t own,
                                                         int64_t heard) {
  MutexLock lock(mutex_);
  if (index() != 0) return InvalidArgument("only ps 0 registers processes");
  if (store_ == nullptr) return Aborted(Message(NotReady()));
  const protocol::Worker task = session.worker();
  ASSIGN_OR_RETURN(const int64_t incarnation,
                   incarnations_.Register(task, session.peer().incarnation, own, heard));
  return Registration{incarnation, store_->DrawnBy(task)};
}

Status Service::Announce(const PeerSession& session, int64_t incarnation) {
  MutexLock lock(mutex_);
  if (index() == 0) return InvalidArgument("ps 0 registers processes itself");
  return incarnations_.Announce(session.worker(), session.peer().incarnation, incarnation);
}

}  // namespace tfjob::ps
