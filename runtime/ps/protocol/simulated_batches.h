// Records the batch from which each simulated contribution was computed, and checks that a state
// uses every batch once. For tests.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "runtime/ps/protocol/ledger.h"

namespace tfjob::ps::protocol {

// Maps each worker to its last batch in a state. Batches are numbered from 1.
using UsedBatches = std::map<Worker, int64_t>;

class SimulatedBatches {
 public:
  void Compute(const Name& name, int64_t batch) {
    redrawn_ += computed_.insert({name.worker, batch}).second ? 0 : 1;
    batches_[name] = batch;
  }
  int64_t Of(const Name& name) const { return batches_.at(name); }
  int redrawn() const { return redrawn_; }

  UsedBatches UsedBy(const std::vector<std::vector<Name>>& lineage) const {
    UsedBatches used;
    for (const std::vector<Name>& set : lineage) {
      for (const Name& name : set) used[name.worker] = std::max(used[name.worker], Of(name));
    }
    return used;
  }
  // Checks the contributions of a commit, and updates `used`. If there are backup workers, batches
  // may be skipped.
  void Check(const std::vector<Name>& set, bool backups, UsedBatches& used) const {
    for (const Name& name : set) {
      int64_t& last = used[name.worker];
      ASSERT_GT(Of(name), last) << "used twice: a batch of " << ToString(name);
      ASSERT_TRUE(backups || Of(name) == last + 1) << "left out: a batch of " << ToString(name);
      last = Of(name);
    }
  }

 private:
  std::map<Name, int64_t> batches_;
  std::set<std::pair<Worker, int64_t>> computed_;
  int redrawn_ = 0;
};

}  // namespace tfjob::ps::protocol
