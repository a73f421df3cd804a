#include "runtime/collectives/transport/task_communicator.h"

#include <string>
#include <utility>

#include "runtime/base/log.h"
#include "runtime/collectives/shared/shared_board.h"
#include "runtime/collectives/shared/shared_communicator.h"
#include "runtime/collectives/socket/socket_communicator.h"
#include "runtime/collectives/transport/machine_sockets.h"
#include "runtime/collectives/transport/rank_rounds.h"

namespace tfjob::collectives {
namespace {

constexpr Logger kLog("collectives");

struct SharedAttempt {
  std::unique_ptr<Communicator> made;
  Status why_not;  // equal on all ranks
};

StatusOr<SharedAttempt> TryShared(const TaskCommunicatorOptions& options) {
  const size_t ranks = options.sockets.size();
  if (ranks > static_cast<size_t>(Board::kMostRanks)) {
    return SharedAttempt{.why_not = Unimplemented(ranks, " ranks, more than ", Board::kMostRanks)};
  }
  RankRounds rounds(options.rank, options.sockets, options.interrupt);
  ASSIGN_OR_RETURN(MachineSockets machine, ConnectOnMachine(rounds, options.patience));
  if (!machine.apart.ok()) return SharedAttempt{.why_not = machine.apart};
  StatusOr<std::unique_ptr<Communicator>> made =
      MakeSharedCommunicator({.rank = options.rank,
                              .sockets = std::move(machine.sockets),
                              .setup_timeout = options.patience,
                              .interrupt = options.interrupt});
  // Wait for twice as long, because another rank may use up its patience.
  ASSIGN_OR_RETURN(auto verdict, rounds.Agree(made.status(), 2 * options.patience));
  if (!verdict.status.ok()) return SharedAttempt{.why_not = verdict.status};
  return SharedAttempt{.made = *std::move(made), .why_not = OkStatus()};
}

// Returns the error for tasks that must share memory but cannot.
Status CannotShare(const Status& why) {
  const bool lasts = absl::IsFailedPrecondition(why) || absl::IsPermissionDenied(why) ||
                     absl::IsUnimplemented(why);
  return Status(lasts ? StatusCode::kFailedPrecondition : StatusCode::kUnavailable,
                StrCat("the tasks cannot exchange through shared memory: ", Message(why)));
}

void LogTransport(const Communicator& communicator, const std::string& because) {
  if (because.empty()) {
    kLog.Info("exchanging with the other tasks",
              {{"transport", communicator.transport()}, {"ranks", communicator.size()}});
  } else {
    kLog.Info("exchanging with the other tasks", {{"transport", communicator.transport()},
                                                  {"ranks", communicator.size()},
                                                  {"not_shared_memory_because", because}});
  }
}

}  // namespace

StatusOr<std::unique_ptr<Communicator>> MakeTaskCommunicator(TaskCommunicatorOptions options) {
  std::string because;
  if (options.transport != TransportChoice::kTcp && options.sockets.size() > 1) {
    ASSIGN_OR_RETURN(SharedAttempt attempt, TryShared(options));
    if (attempt.made != nullptr) {
      LogTransport(*attempt.made, "");
      return std::move(attempt.made);
    }
    because = Message(attempt.why_not);
    if (options.transport == TransportChoice::kSharedMemory) {
      return CannotShare(attempt.why_not);
    }
  }
  ASSIGN_OR_RETURN(auto made, MakeSocketCommunicator(
                                  {.rank = options.rank, .sockets = std::move(options.sockets)}));
  LogTransport(*made, because);
  return made;
}

}  // namespace tfjob::collectives
