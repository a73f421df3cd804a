// Exchanges the facts that all tasks of a group need between two steps.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/collectives/communicator.h"
#include "runtime/state/learning_rate.h"

namespace tfjob::strategy {

// The next action of all tasks of a generation.
enum class Demand {
  kStep,      // they take a step
  kValidate,  // they share a validation
  kEndRun,    // a task ends the run
  kDepart,    // a task exits; the others form a new generation
  kAdmit,     // a task waits to join; all form a new generation
};

// Not thread-safe.
class Announcements {
 public:
  void SetRanks(int ranks) { words_.assign(kFixed + static_cast<size_t>(ranks), 0); }

  // The announcement of one task.
  struct Own {
    int64_t examples = 0;      // of this task for the step
    bool ending = false;       // the task was asked to exit, and takes no further step
    bool others_join = false;  // tasks are waiting to join; set only by the leader
    bool ends_run = false;     // the task ends the run for all tasks
    bool validates = false;    // the task validates before its next step
    bool has_result = false;   // the task has the result of a validation of the present state
    // The rate that the task has set; nullopt for the optimizer's own. Rank 0 decides.
    std::optional<state::LearningRate> learning_rate = {};
  };

  // Sums the announcements of all ranks. All ranks must call Exchange.
  Status Exchange(collectives::Communicator& communicator, const Own& own) {
    std::ranges::fill(words_, 0);
    words_[0] = own.examples;
    words_[1] = own.examples > 0 ? 1 : 0;
    words_[2] = own.others_join ? 1 : 0;
    words_[3] = own.ends_run ? 1 : 0;
    // The other ranks add zeros, so the sums are the bits of rank 0's rate.
    if (communicator.rank() == 0 && own.learning_rate) {
      words_[4] = 1 + own.learning_rate->step;
      words_[5] = std::bit_cast<int64_t>(own.learning_rate->rate);
    }
    words_[kFixed + static_cast<size_t>(communicator.rank())] = (own.ending ? kEnds : 0) |
                                                                (own.validates ? kValidates : 0) |
                                                                (own.has_result ? kHasResult : 0);
    return communicator.AllReduce(std::as_writable_bytes(std::span(words_)), DType::kInt64,
                                  collectives::Reduction::kSum);
  }

  // All ranks get the same result. A validation precedes the end of a run, because a task that
  // validates needs the others. A task that exits announces this only once, so this comes first.
  Demand Demanded() const {
    const bool validates = AnyHas(kValidates);
    if (EndsRun() && !validates) return Demand::kEndRun;
    if (AnyHas(kEnds)) return Demand::kDepart;
    if (words_[2] > 0) return Demand::kAdmit;
    return validates ? Demand::kValidate : Demand::kStep;
  }
  int64_t examples() const { return words_[0]; }
  int64_t ranks_with_examples() const { return words_[1]; }
  bool EndsRun() const { return words_[3] > 0; }
  // Returns the rate that all ranks must use in the next step, bit for bit; nullopt for the
  // optimizer's own.
  std::optional<state::LearningRate> learning_rate() const {
    if (words_[4] <= 0) return std::nullopt;
    return state::LearningRate{.rate = std::bit_cast<double>(words_[5]), .step = words_[4] - 1};
  }
  bool Ends(int rank) const { return Has(rank, kEnds); }
  // Returns the ranks that validate, in ascending order.
  std::vector<int> Validators() const {
    std::vector<int> ranks;
    for (int rank = 0; rank < size(); ++rank)
      if (Has(rank, kValidates)) ranks.push_back(rank);
    return ranks;
  }
  // Returns the lowest rank that has the result of the validation, or -1 if none has it.
  int RankWithResult() const {
    for (int rank = 0; rank < size(); ++rank)
      if (Has(rank, kHasResult)) return rank;
    return -1;
  }

 private:
  static constexpr size_t kFixed = 6;
  static constexpr int64_t kEnds = 1, kValidates = 2, kHasResult = 4;  // bits of a rank's word

  int size() const { return static_cast<int>(words_.size() - kFixed); }
  bool Has(int rank, int64_t bit) const {
    return (words_[kFixed + static_cast<size_t>(rank)] & bit) != 0;
  }
  bool AnyHas(int64_t bit) const {
    return std::any_of(words_.begin() + kFixed, words_.end(),
                       [bit](int64_t word) { return (word & bit) != 0; });
  }

  // The number of examples, the number of ranks that have any, whether other tasks are waiting to
  // join, whether the run ends, rank 0's learning rate (0 or 1 + its step, and its bits) and, for
  // each rank, its bits.
  std::vector<int64_t> words_;
};

}  // namespace tfjob::strategy
