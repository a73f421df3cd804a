#include "runtime/collectives/transport/task_communicator.h"

#include <string>
#include <utility>

#include "runtime/base/log.h"
#include "runtime/collectives/shared/shared_board.h"
#include "runtime/collectives/shared/shared_communicator.h"
#include "runtime/collectives/socket/socket_communicator.h"
#include "runtime/collectives/transport/gpu_ranks.h"
#include "runtime/collectives/transport/machine_sockets.h"
#include "runtime/collectives/transport/rank_rounds.h"
#include "runtime/collectives/transport/shared_level.h"

namespace tfjob::collectives {
namespace {

constexpr Logger kLog("collectives");

struct SharedAttempt {
  std::unique_ptr<Communicator> made;  // over shared memory alone
  SharedLevel level;                   // if `made` is null; unknown machines: use only the sockets
  Status why_not;                      // why `made` is null; equal on all ranks
};

StatusOr<SharedAttempt> MakeShared(RankRounds& rounds, const TaskCommunicatorOptions& options,
                                   std::vector<wire::UniqueFd> sockets) {
  StatusOr<std::unique_ptr<Communicator>> made =
      MakeSharedCommunicator({.rank = options.rank,
                              .sockets = std::move(sockets),
                              .setup_timeout = options.patience,
                              .interrupt = options.interrupt});
  // Wait for twice as long, because another rank may use up its patience.
  ASSIGN_OR_RETURN(auto verdict, rounds.Agree(made.status(), 2 * options.patience));
  if (!verdict.status.ok()) return SharedAttempt{.why_not = verdict.status};
  return SharedAttempt{.made = *std::move(made), .why_not = OkStatus()};
}

StatusOr<SharedAttempt> TryShared(const TaskCommunicatorOptions& options) {
  const size_t ranks = options.sockets.size();
  if (ranks > static_cast<size_t>(kMostPlacedRanks)) {
    return SharedAttempt{.why_not = Unimplemented(ranks, " ranks, more than ", kMostPlacedRanks)};
  }
  RankRounds rounds(options.rank, options.sockets, options.interrupt);
  ASSIGN_OR_RETURN(MachineSockets machine,
                   ConnectOnMachine(rounds, options.patience, options.may_share));
  if (!machine.failed.ok()) return SharedAttempt{.why_not = machine.failed};
  if (machine.apart.ok()) {
    if (ranks > static_cast<size_t>(Board::kMostRanks)) {
      return SharedAttempt{
          .why_not = Unimplemented(ranks, " ranks on one machine, more than ", Board::kMostRanks)};
    }
    return MakeShared(rounds, options, std::move(machine.sockets));
  }
  if (!machine.hosts.HasTwoLevels() || options.transport == TransportChoice::kSharedMemory) {
    return SharedAttempt{.why_not = machine.apart};
  }
  ASSIGN_OR_RETURN(LevelAttempt attempt,
                   MakeSharedLevel(rounds, machine.hosts, std::move(machine.sockets), options.costs,
                                   options.patience));
  if (!attempt.failed.ok()) return SharedAttempt{.why_not = attempt.failed};
  return SharedAttempt{.level = std::move(attempt.level), .why_not = machine.apart};
}

// Returns the error for tasks that must share memory but cannot.
Status CannotShare(const Status& why) {
  const bool lasts = absl::IsFailedPrecondition(why) || absl::IsPermissionDenied(why) ||
                     absl::IsUnimplemented(why);
  return Status(lasts ? StatusCode::kFailedPrecondition : StatusCode::kUnavailable,
                StrCat("the tasks cannot exchange through shared memory: ", Message(why)));
}

void LogTransport(const Communicator& communicator, const Hosts& hosts,
                  const std::string& because) {
  if (because.empty()) {
    kLog.Info("exchanging with the other tasks",
              {{"transport", communicator.transport()}, {"ranks", communicator.size()}});
  } else if (hosts.known()) {
    kLog.Info("exchanging with the other tasks", {{"transport", communicator.transport()},
                                                  {"ranks", communicator.size()},
                                                  {"machines", ToString(hosts)},
                                                  {"not_shared_memory_alone_because", because}});
  } else {
    kLog.Info("exchanging with the other tasks", {{"transport", communicator.transport()},
                                                  {"ranks", communicator.size()},
                                                  {"not_shared_memory_because", because}});
  }
}

// Logs nothing on a CPU, where NCCL cannot be used.
void LogWithoutNccl(const TaskCommunicatorOptions& options, const Status& why) {
  if (options.device == nullptr || options.device->immediate()) return;
  kLog.Info("gradients go through the memory of the host", {{"not_nccl_because", Message(why)}});
}

}  // namespace

StatusOr<std::unique_ptr<Communicator>> MakeTaskCommunicator(TaskCommunicatorOptions options) {
  if (options.nccl != NcclChoice::kNever) {
    ASSIGN_OR_RETURN(NcclAttempt attempt, TryNccl(options));
    if (attempt.made != nullptr) {
      LogTransport(*attempt.made, {}, "");
      return std::move(attempt.made);
    }
    if (options.nccl == NcclChoice::kAlways) {
      return FailedPrecondition("the tasks cannot exchange with NCCL: ", Message(attempt.why_not));
    }
    LogWithoutNccl(options, attempt.why_not);
  }
  SharedLevel level;
  std::string because;
  if (options.order == SumOrder::kRing) {
    if (options.transport == TransportChoice::kSharedMemory) {
      return InvalidArgument(
          "the tasks cannot add around a ring through shared memory, where the order is that of "
          "the tree: use tcp");
    }
    if (options.transport == TransportChoice::kAuto) because = "a ring needs sockets";
  } else if (options.transport != TransportChoice::kTcp && options.sockets.size() > 1) {
    ASSIGN_OR_RETURN(SharedAttempt attempt, TryShared(options));
    if (attempt.made != nullptr) {
      LogTransport(*attempt.made, {}, "");
      return std::move(attempt.made);
    }
    because = Message(attempt.why_not);
    if (options.transport == TransportChoice::kSharedMemory) {
      return CannotShare(attempt.why_not);
    }
    level = std::move(attempt.level);
  }
  const Hosts hosts = level.hosts;
  ASSIGN_OR_RETURN(auto made, MakeSocketCommunicator({.rank = options.rank,
                                                      .sockets = std::move(options.sockets),
                                                      .costs = options.costs,
                                                      .shared = std::move(level),
                                                      .order = options.order}));
  LogTransport(*made, hosts, because);
  return made;
}

}  // namespace tfjob::collectives
