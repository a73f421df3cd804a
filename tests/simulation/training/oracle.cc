#include "tests/simulation/training/oracle.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "runtime/ps/placement.h"

namespace tfjob::simulation {
namespace {

constexpr double kLearningRate = 0.5;
// The maximum number of batches that a task finishes while a server is copied.
constexpr int kInFlight = 2;

}  // namespace

Oracle::Oracle(const Plan& plan, Story& story) : plan_(plan), story_(story) {
  const int64_t row_bytes = plan.trainers * plan.batches * int64_t{sizeof(float)};
  for (const state::Variable& variable : plan.definition.state.variables)
    servers_.emplace_back(static_cast<size_t>(variable.shape.dim(0)));
  for (const ps::Shard& shard : ps::Place(plan.definition, plan.servers)) {
    std::vector<int>& rows = servers_[static_cast<size_t>(shard.variable)];
    for (int64_t at = shard.offset; at < shard.offset + shard.size; at += row_bytes)
      rows[static_cast<size_t>(at / row_bytes)] = shard.server;
  }
}

void Oracle::OnLost(const TaskPlan& task) {
  ++losses_[{task.type, task.index}];
  if (task.type == "ps") ++server_losses_;
  if (task.type == "chief") ++chief_losses_;
}

int Oracle::Losses(const std::string& type, int index) const {
  const auto found = losses_.find({type, index});
  return found == losses_.end() ? 0 : found->second;
}

int Oracle::Losses(int rank) const {
  const state::TaskId& task = plan_.definition.tasks[static_cast<size_t>(rank)];
  return Losses(task.type, task.index);
}

std::string Oracle::NameOf(int rank) const {
  const state::TaskId& task = plan_.definition.tasks[static_cast<size_t>(rank)];
  return StrCat(task.type, " ", task.index);
}

// ---- the contents of the variables

void Oracle::SetGradients(int rank, int64_t batch, std::vector<Tensor>& gradients) const {
  // In synchronous mode, a step applies the mean of `terms` gradients.
  const int terms = plan_.synchronous() ? plan_.definition.replicas_to_aggregate : 1;
  const int64_t width = plan_.trainers * plan_.batches;
  for (Tensor& gradient : gradients) {
    std::span<float> cells = gradient.data<float>();
    std::ranges::fill(cells, 0.f);
    for (int64_t row = 0; row < gradient.shape().dim(0); ++row) {
      cells[static_cast<size_t>(row * width + rank * plan_.batches + batch)] =
          static_cast<float>(-terms / kLearningRate);
    }
  }
}

std::vector<Oracle::Row> Oracle::RowsOf(const std::vector<const Tensor*>& values) const {
  const auto width = static_cast<size_t>(plan_.trainers * plan_.batches);
  std::vector<Row> rows;
  for (size_t v = 0; v < values.size(); ++v) {
    for (size_t row = 0; row < servers_[v].size(); ++row)
      rows.push_back({.number = rows.size(),
                      .server = servers_[v][row],
                      .cells = values[v]->data<float>().subspan(row * width, width)});
  }
  return rows;
}

int64_t Oracle::Used(const Row& row, int rank, int64_t batch) const {
  // Round the element, because the mean of three gradients is not exact.
  return std::lround(row.cells[static_cast<size_t>(rank * plan_.batches + batch)]);
}

int64_t Oracle::Total(const Row& row) {
  int64_t total = 0;
  for (float cell : row.cells) {
    const float whole = std::round(cell);
    if (std::abs(cell - whole) > 0.01f || whole < 0) {
      story_.Violate(StrCat("a batch was used ", cell, " times"));
      return -1;
    }
    total += static_cast<int64_t>(whole);
  }
  return total;
}

// ---- results

void Oracle::CheckResult(int rank, int64_t batch, const ps::StepResult& result,
                         const std::vector<Tensor>& values) {
  const std::string who = StrCat("batch ", batch, " of ", NameOf(rank));
  if (result.drawn > batch) story_.Violate(StrCat(who, ": position ", result.drawn));
  if (result.again || result.rolled_back) return;
  const bool stale = result.dropped && plan_.max_staleness;
  if (stale) stale_.insert({rank, batch});
  const bool first_time = Losses(rank) == 0 && Losses("ps", 0) == 0;
  std::vector<const Tensor*> pointers;
  for (const Tensor& value : values) pointers.push_back(&value);
  for (const Row& row : RowsOf(pointers)) {
    const int64_t used = Used(row, rank, batch);
    if (!result.dropped && used < 1)
      story_.Violate(StrCat(who, " was answered with values of ps ", row.server, " without it"));
    // A restarted task may recompute a batch whose gradient its earlier process has already
    // contributed.
    if (result.dropped && used > 0 && result.drawn != batch)
      story_.Violate(StrCat(who, " was dropped, but ps ", row.server, " has used it"));
    if (stale && used > 0 && first_time)
      story_.Violate(StrCat(who, " was too stale, but ps ", row.server, " has used it"));
    if (!plan_.synchronous()) continue;
    const int64_t total = Total(row);
    const int64_t per_step = plan_.definition.replicas_to_aggregate;
    if (total >= 0 && (total % per_step != 0 || total / per_step < result.global_step))
      story_.Violate(StrCat(who, ": ps ", row.server, " has used ", total, " batches at step ",
                            result.global_step));
  }
}

void Oracle::CheckStep(const std::string& task, int64_t before, int64_t now, bool rolled_back) {
  if (server_losses_ > 0) return;
  if (now < before) story_.Violate(StrCat(task, " went back from step ", before, " to ", now));
  // If a chief is lost while it fills the servers, some of them stay empty.
  if (rolled_back && chief_losses_ == 0)
    story_.Violate(StrCat(task, " was rolled back to step ", now, ", but no server was lost"));
}

// ---- snapshots

Oracle::Positions Oracle::ReadPositions(const std::string& ledger) {
  Positions drawn(static_cast<size_t>(plan_.trainers));
  std::istringstream lines(ledger);
  int shard = 0, index = 0;
  int64_t incarnation = 0, number = 0;
  std::string type;
  while (lines >> shard >> type >> index >> incarnation >> number) {
    if (shard != -3) continue;
    const auto found = std::ranges::find(plan_.definition.tasks, state::TaskId{type, index});
    if (found == plan_.definition.tasks.end()) {
      story_.Violate(StrCat("the ledger has a position of ", type, " ", index));
      continue;
    }
    drawn[static_cast<size_t>(found - plan_.definition.tasks.begin())] = number;
  }
  return drawn;
}

void Oracle::OnRestored(const state::Snapshot& snapshot) {
  if (plan_.synchronous()) return;
  const Positions drawn = ReadPositions(snapshot.ledger);
  std::vector<const Tensor*> pointers;
  for (const state::VariableState& variable : snapshot.variables)
    pointers.push_back(&variable.value);
  for (const Row& row : RowsOf(pointers)) {
    if (row.server != 0) continue;
    for (int rank = 0; rank < plan_.trainers; ++rank) {
      int torn = 0;
      for (int64_t batch = 1; batch <= drawn[static_cast<size_t>(rank)]; ++batch) {
        if (Used(row, rank, batch) > 0 || MayLack(row, rank, batch)) continue;
        torn_.insert({row.number, rank, batch});
        ++torn;
      }
      if (torn > kInFlight + Losses(rank))
        story_.Violate(StrCat("a copy of ps 0 lacks ", torn, " batches of ", NameOf(rank)));
    }
  }
}

void Oracle::CheckSnapshot(const state::Snapshot& snapshot, bool last) {
  const Positions drawn = ReadPositions(snapshot.ledger);
  for (int64_t number : drawn) {
    if (number < plan_.batches) continue;
    return story_.Violate(StrCat("position ", number, ": more batches than there should be"));
  }
  std::vector<const Tensor*> pointers;
  for (const state::VariableState& variable : snapshot.variables)
    pointers.push_back(&variable.value);
  for (const Row& row : RowsOf(pointers)) {
    if (plan_.synchronous()) {
      CheckSynchronous(row, drawn, snapshot.global_step);
    } else {
      CheckAsynchronous(row, drawn, last);
    }
  }
  const bool undisturbed = plan_.faults.empty() && plan_.synchronous() &&
                           plan_.definition.replicas_to_aggregate == plan_.trainers &&
                           plan_.definition.start_timeout >= Duration(10s);
  for (int rank = 0; rank < plan_.trainers && undisturbed; ++rank) {
    if (drawn[static_cast<size_t>(rank)] == snapshot.global_step) continue;
    story_.Violate(StrCat("step ", snapshot.global_step, " has ", drawn[static_cast<size_t>(rank)],
                          " batches of ", NameOf(rank)));
  }
}

void Oracle::CheckSynchronous(const Row& row, const Positions& drawn, int64_t step) {
  const int64_t total = Total(row);
  if (total < 0) return;
  if (total != step * plan_.definition.replicas_to_aggregate) {
    return story_.Violate(
        StrCat("step ", step, ": ps ", row.server, " has used ", total, " batches"));
  }
  // With backup workers, a dropped batch counts as drawn.
  const bool backups = plan_.definition.replicas_to_aggregate < plan_.trainers;
  for (int rank = 0; rank < plan_.trainers; ++rank) {
    for (int64_t batch = 1; batch < plan_.batches; ++batch) {
      const int64_t used = Used(row, rank, batch);
      const bool counts = batch <= drawn[static_cast<size_t>(rank)];
      if (used == (counts ? 1 : 0) || (counts && backups && used == 0)) continue;
      return story_.Violate(StrCat("step ", step, ": ps ", row.server, " has used batch ", batch,
                                   " of ", NameOf(rank), " ", used, " times at position ",
                                   drawn[static_cast<size_t>(rank)]));
    }
  }
}

void Oracle::CheckAsynchronous(const Row& row, const Positions& drawn, bool last) {
  if (Total(row) < 0) return;
  for (int rank = 0; rank < plan_.trainers; ++rank)
    CheckAsynchronous(row, rank, drawn[static_cast<size_t>(rank)], last);
}

// Only ps 0 stores the positions. If its state is lost, the positions of all tasks are rolled back,
// but the other servers keep their state. If a task is killed, its batch in flight may be lost, or
// only some servers may use it. The shards of a copy are copied at different times, so only the
// last copy must agree with the positions.
void Oracle::CheckAsynchronous(const Row& row, int rank, int64_t position, bool last) {
  const int positions_lost = Losses("ps", 0);
  const int own_losses = Losses(rank);
  const int most = 1 + own_losses + (row.server == 0 ? 0 : positions_lost);
  int64_t odd = 0, missing = 0;
  for (int64_t batch = 1; batch < plan_.batches; ++batch) {
    const int64_t used = Used(row, rank, batch);
    if (used > most) {
      return story_.Violate(StrCat("ps ", row.server, " has used batch ", batch, " of ",
                                   NameOf(rank), " ", used, " times"));
    }
    if (used == 0 && MayLack(row, rank, batch)) continue;
    if (used != (batch <= position ? 1 : 0)) ++odd;
    if (used == 0 && batch <= position) ++missing;
  }
  if (last && row.server == 0 && missing > own_losses + 1) {
    return story_.Violate(
        StrCat("ps 0 lacks ", missing, " batches of ", NameOf(rank), " up to position ", position));
  }
  // A task that was cut off may reconnect with a batch in flight. This batch may disagree with the
  // position.
  const bool exact = last && positions_lost == 0 && Losses("ps", row.server) == 0;
  if (exact && odd > own_losses + (plan_.faults.empty() ? 0 : 1)) {
    story_.Violate(StrCat("ps ", row.server, " has not used ", odd, " batches of ", NameOf(rank),
                          " once up to position ", position));
  }
}

}  // namespace tfjob::simulation
