// Opens the data connections that a task must dial in each generation: the connections to the
// members of higher rank. Private to this package.
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/base/thread.h"
#include "runtime/collectives/endpoint/endpoint_state.h"

namespace tfjob::collectives {

// Owned by one thread. Dials several members at a time, on threads that sleep between generations.
class Dialler {
 public:
  explicit Dialler(std::shared_ptr<Endpoint::State> state) : state_(std::move(state)) {}
  // Waits for the attempts in progress.
  ~Dialler();

  // Dials the members to which there is no connection yet, including those to which an attempt has
  // failed. Returns at once. Call it several times per second while there are such members.
  void Dial() ABSL_LOCKS_EXCLUDED(state_->mutex);

 private:
  struct Target {
    DataChannel channel;
    int rank = 0;
    Member member;
  };
  struct Attempt {
    bool running = false;
    std::chrono::steady_clock::time_point next;  // when the next attempt may start
  };

  void Loop() ABSL_LOCKS_EXCLUDED(state_->mutex);
  // Returns a member to dial that no other thread is dialling, or nullopt if there is currently
  // none.
  std::optional<Target> NextTarget() ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_->mutex);
  StatusOr<rpc::DataConnection> Open(const Target& target) const;
  void Finish(const Target& target, StatusOr<rpc::DataConnection> dialled)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(state_->mutex);

  const std::shared_ptr<Endpoint::State> state_;
  CondVar wake_;
  bool stopping_ ABSL_GUARDED_BY(state_->mutex) = false;
  DataChannel channel_ ABSL_GUARDED_BY(state_->mutex);              // the attempts' generation
  std::map<int, Attempt> attempts_ ABSL_GUARDED_BY(state_->mutex);  // by rank
  std::vector<Thread> threads_;
};

}  // namespace tfjob::collectives
