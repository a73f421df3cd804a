// Checks the contents of a simulated job's variables. Every row of every variable has one element
// per training task and batch. If the gradient of a batch is used, it adds 1 to the batch's element
// in each row, so the variables show how often each batch was used.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "runtime/ps/client/client.h"
#include "tests/simulation/training/plan.h"
#include "tests/simulation/training/story.h"

namespace tfjob::simulation {

class Oracle {
 public:
  Oracle(const Plan& plan, Story& story);

  // Records that a process of the task was killed, or asked to stop.
  void OnLost(const TaskPlan& task);

  // Fills `gradients`, one tensor per variable, for a batch of a training task.
  void SetGradients(int rank, int64_t batch, std::vector<Tensor>& gradients) const;
  // Checks the result that a task received for its batch, and the values that the task received
  // with it.
  void CheckResult(int rank, int64_t batch, const ps::StepResult& result,
                   const std::vector<Tensor>& values);
  // Checks a copy of the state. `last` is true if all training tasks have left.
  void CheckSnapshot(const state::Snapshot& snapshot, bool last);
  // Records that servers are about to be filled with this snapshot.
  void OnRestored(const state::Snapshot& snapshot);
  // Checks that the step decreases only if a server was lost.
  void CheckStep(const std::string& task, int64_t before, int64_t now, bool rolled_back);

 private:
  struct Row {
    size_t number = 0;  // index among the rows of all variables
    int server = 0;
    std::span<const float> cells;
  };
  using Positions = std::vector<int64_t>;  // by rank

  std::vector<Row> RowsOf(const std::vector<const Tensor*>& values) const;
  int64_t Used(const Row& row, int rank, int64_t batch) const;
  // Returns how many batches the row contains, or -1 if its elements are not whole numbers.
  int64_t Total(const Row& row);
  Positions ReadPositions(const std::string& ledger);
  void CheckSynchronous(const Row& row, const Positions& drawn, int64_t step);
  void CheckAsynchronous(const Row& row, const Positions& drawn, bool last);
  void CheckAsynchronous(const Row& row, int rank, int64_t position, bool last);
  // Returns whether a batch before its task's position may be unused, because the batch was dropped
  // as stale or a state without it was restored.
  bool MayLack(const Row& row, int rank, int64_t batch) const {
    return stale_.contains({rank, batch}) || torn_.contains({row.number, rank, batch});
  }
  int Losses(const std::string& type, int index) const;
  int Losses(int rank) const;
  std::string NameOf(int rank) const;

  const Plan& plan_;
  Story& story_;
  std::vector<std::vector<int>> servers_;  // the server of each row, by variable and row
  std::map<std::pair<std::string, int>, int> losses_;
  int server_losses_ = 0;
  std::set<std::pair<int, int64_t>> stale_;  // rank and number of each batch that was too stale
  // The row, rank and number of each batch that counts as drawn in a restored state but is not
  // contained in it, because the batch was in flight while ps 0 was copied.
  std::set<std::tuple<size_t, int, int64_t>> torn_;
  int chief_losses_ = 0;
};

}  // namespace tfjob::simulation
