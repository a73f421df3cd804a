// Computes the sums of squares that simulated servers report for measured commits, and checks the
// totals that the servers then receive. For tests.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <tuple>
#include <vector>

#include "runtime/ps/protocol/messages.h"

namespace tfjob::ps::protocol {

class SimulatedSquares {
 public:
  // With 0 groups, commits are not measured.
  void SetGroups(int groups) { groups_ = static_cast<size_t>(groups); }
  size_t groups() const { return groups_; }
  int checked() const { return checked_; }  // commits that were applied after they were measured

  void Begin(int server, const Commit& commit) {
    ASSERT_GT(groups_, 0u);
    const bool first = measures_.insert({{commit.epoch, commit.step, server}, commit.set}).second;
    ASSERT_TRUE(first) << "measured twice on " << server;
  }

  // Returns the sums that `server` reports. Their total over all servers depends on the
  // contributions in the commit, and its last bits depend on the order in which the servers' sums
  // are added.
  std::vector<double> On(int server, const Commit& commit) const {
    double seed = server + 1;
    for (const Name& name : commit.set) {
      const double number = name.worker.index + 7.1 * static_cast<double>(name.sequence);
      seed = std::fmod(seed * 31 + number, 1e6);
    }
    std::vector<double> squares;
    for (size_t g = 0; g < groups_; ++g) squares.push_back(1 / (seed + static_cast<double>(g) + 3));
    return squares;
  }

  // Checks that an applied commit was measured on all servers, and that its totals are the sums of
  // the squares that they reported.
  void Check(const Commit& commit, int servers, const std::vector<double>& totals) {
    ASSERT_EQ(commit.measured, groups_ > 0);
    std::vector<double> expected(groups_, 0);
    for (int i = 0; i < servers && commit.measured; ++i) {
      ASSERT_EQ((measures_[{commit.epoch, commit.step, i}]), commit.set) << "on server " << i;
      const std::vector<double> squares = On(i, commit);
      for (size_t g = 0; g < groups_; ++g) expected[g] += squares[g];
    }
    ASSERT_EQ(totals, expected);
    checked_ += commit.measured ? 1 : 0;
  }

 private:
  size_t groups_ = 0;
  int checked_ = 0;
  std::map<std::tuple<int64_t, int64_t, int>, std::vector<Name>> measures_;  // epoch, step, server
};

}  // namespace tfjob::ps::protocol
