// Tests tables of which tasks read only rows: what they read, how they continue after a loss, and
// what servers and clients refuse.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "runtime/ps/test_peer.h"
#include "runtime/ps/test_tasks.h"
#include "runtime/ps/wire.h"

namespace tfjob::ps {
namespace {

constexpr int64_t kRows = 3000, kCols = 250;
using Rows = std::vector<int64_t>;

// Defines a table of 3 MB in shards of 400 KB, a vector, and a table that does not change.
Definition Tables(Mode mode) {
  Definition definition;
  definition.state.variables = {
      {.name = "table", .shape = {kRows, kCols}},
      {.name = "b", .shape = {7}},
      {.name = "frozen", .shape = {kRows, 2}, .update = state::Update::kAssign}};
  definition.state.optimizer.learning_rate = 1;
  definition.mode = mode;
  definition.max_shard_bytes = 400'000;
  definition.row_gradients = {0};
  definition.tables = {0, 2};
  return definition;
}

// Returns a state in which every value of row r is r in the trained table, and -r in the frozen
// table.
state::Snapshot NumberedRows(const Definition& definition) {
  state::Snapshot snapshot = InitialState(definition, 0);
  for (const auto& [variable, sign] : {std::pair<size_t, float>{0, 1.f}, {2, -1.f}}) {
    const std::span<float> values = snapshot.variables[variable].value.data<float>();
    const size_t cols = values.size() / kRows;
    for (size_t i = 0; i < values.size(); ++i) values[i] = sign * static_cast<float>(i / cols);
  }
  return snapshot;
}

class TableTask {
 public:
  explicit TableTask(const Definition& definition) : definition_(definition) {}

  Status Join(ClientOptions options) {
    options.definition = definition_;
    ASSIGN_OR_RETURN(client_, ParameterClient::Create(std::move(options)));
    return client_->WaitReady(values_).status();
  }
  // Reads rows of both tables. For each table, also requests `padding` rows that do not count.
  StatusOr<bool> Pull(const Rows& rows, const Rows& frozen, size_t padding = 0) {
    indices_ = {rows, {}, frozen};
    rows_.assign(3, {});
    std::vector<std::span<const int64_t>> indices;
    std::vector<std::span<std::byte>> values;
    for (size_t v = 0; v < 3; ++v) {
      indices_[v].resize(indices_[v].empty() ? 0 : indices_[v].size() + padding, -1);
      rows_[v].resize(indices_[v].size() * (v == 0 ? kCols : 2));
      indices.emplace_back(indices_[v]);
      values.push_back(std::as_writable_bytes(std::span(rows_[v])));
    }
    return client_->PullRows(indices, values);
  }
  // Subtracts 1 from each of these rows.
  StatusOr<StepResult> Train(const Rows& rows) {
    const std::vector<float> ones(std::max<size_t>(7, rows.size() * kCols), 1);
    const std::vector<std::span<const std::byte>> gradients = {
        std::as_bytes(std::span(ones).first(rows.size() * kCols)),
        std::as_bytes(std::span(ones).first(7)),
        {}};
    const std::vector<std::span<const int64_t>> indices = {rows, {}, {}};
    RETURN_IF_ERROR(client_->BeginStep(gradients, values_, 0, indices));
    return client_->EndStep();
  }
  // Checks the rows that were read last. A value must be the number of its row minus `subtracted`
  // in the first table, and the negated number in the other.
  void ExpectRows(float subtracted) const {
    for (size_t v = 0; v < 3; v += 2) {
      const size_t cols = v == 0 ? kCols : 2;
      for (size_t i = 0; i < rows_[v].size(); ++i) {
        const int64_t row = indices_[v][i / cols];
        const float number = static_cast<float>(row);
        if (row < 0) continue;
        // The mean of three ones is rounded.
        ASSERT_NEAR(rows_[v][i], v == 0 ? number - subtracted : -number, 1e-3) << "row " << row;
      }
    }
  }
  float vector() const { return b_[0]; }
  ParameterClient& client() { return *client_; }

 private:
  const Definition definition_;
  float b_[7] = {};
  std::vector<std::span<std::byte>> values_ = {{}, std::as_writable_bytes(std::span(b_)), {}};
  std::vector<Rows> indices_;
  std::vector<std::vector<float>> rows_;
  std::unique_ptr<ParameterClient> client_;
};

Rows EveryNth(int64_t n, int64_t first = 0) {
  Rows rows;
  for (int64_t row = first; row < kRows; row += n) rows.push_back(row);
  return rows;
}

class TableTest : public ParameterServerTest {
 protected:
  ClientOptions ChiefOf(const Definition& definition) {
    ClientOptions options = Chief(definition);
    options.provide_state = [definition] { return NumberedRows(definition); };
    return options;
  }
};

TEST_F(TableTest, TasksReadTheRowsThatTheyAskFor) {
  StartServers(2);
  const Definition definition = Tables(Mode::kAsynchronous);
  TableTask task(definition);
  ASSERT_EQ(task.Join(ChiefOf(definition)), OkStatus());
  // Reads all rows (which need more than one frame), a few rows, rows of one shard only, and no
  // rows.
  for (const Rows& rows : {EveryNth(1), EveryNth(97, 5), Rows{1, 2}, Rows{}}) {
    ASSERT_EQ(task.Pull(rows, EveryNth(11), 3).value(), true);
    task.ExpectRows(0);
  }
}

TEST_F(TableTest, TasksReadTheRowsOfTheirStep) {
  StartServers(2);
  Definition definition = Tables(Mode::kSynchronous);
  definition.replicas_to_aggregate = 3;
  definition.tasks = {{"chief", 0}, {"worker", 0}, {"worker", 1}};
  definition.start_timeout = 30s;
  std::vector<std::unique_ptr<TableTask>> tasks;
  for (int i = 0; i < 3; ++i) tasks.push_back(std::make_unique<TableTask>(definition));
  std::vector<std::thread> threads;
  for (size_t i = 0; i < 3; ++i) {
    threads.emplace_back([&, i] {
      ASSERT_EQ(tasks[i]->Join(i == 0 ? ChiefOf(definition) : Worker(static_cast<int>(i) - 1)),
                OkStatus());
      for (int step = 0; step < 5; ++step) {
        ASSERT_EQ(tasks[i]->Pull(EveryNth(3), EveryNth(7, 1), 1).value(), true);
        tasks[i]->ExpectRows(static_cast<float>(step));
        ASSERT_TRUE(tasks[i]->Train(EveryNth(3)).ok());
        EXPECT_NEAR(tasks[i]->vector(), -static_cast<float>(step + 1), 1e-3);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(TableTest, AnAsynchronousServerThatWasLostIsFilledAgain) {
  StartServers(2);
  const Definition definition = Tables(Mode::kAsynchronous);
  TableTask task(definition);
  ASSERT_EQ(task.Join(ChiefOf(definition)), OkStatus());
  ASSERT_TRUE(task.Train(EveryNth(1)).ok());
  for (auto& server : tasks_) {
    server->Kill();
    server->Start(2);
  }
  ASSERT_EQ(task.Pull(EveryNth(4), {2}).value(), true);
  task.ExpectRows(0);
}

TEST_F(TableTest, ASynchronousRollbackIsTheResultOfTheNextStep) {
  StartServers(2);
  const Definition definition = Tables(Mode::kSynchronous);
  TableTask task(definition);
  ASSERT_EQ(task.Join(ChiefOf(definition)), OkStatus());
  ASSERT_TRUE(task.Train(EveryNth(1)).ok());
  EXPECT_EQ(task.vector(), -1);
  tasks_[1]->Kill();
  tasks_[1]->Start(2);
  ASSERT_EQ(task.Pull(EveryNth(4), {2}).value(), false);
  ASSERT_EQ(task.Pull(EveryNth(4), {2}).value(), false) << "until a step has said so";
  const StatusOr<StepResult> result = task.Train(EveryNth(4));
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->rolled_back);
  EXPECT_EQ(result->global_step, 0);
  EXPECT_EQ(task.vector(), 0);
  ASSERT_EQ(task.Pull(EveryNth(4), {2}).value(), true);
  task.ExpectRows(0);
}

TEST_F(TableTest, TheClientRefusesWhatAreNoRows) {
  StartServers(1);
  const Definition definition = Tables(Mode::kAsynchronous);
  TableTask task(definition);
  ASSERT_EQ(task.Join(ChiefOf(definition)), OkStatus());
  EXPECT_EQ(Message(task.Pull({1, 1}, {}).status()),
            "table: row 1: expected ascending rows from 0 to 2999");
  EXPECT_EQ(Message(task.Pull({}, {3000}).status()),
            "frozen: row 3000: expected ascending rows from 0 to 2999");
  const Rows row = {1};
  std::vector<float> values(kCols);
  std::vector<std::span<const int64_t>> indices = {row, {}, {}};
  std::vector<std::span<std::byte>> rows = {
      std::as_writable_bytes(std::span(values)).first(999), {}, {}};
  EXPECT_EQ(Message(task.client().PullRows(indices, rows).status()),
            "table: expected 1 rows of 1000 bytes, got 999 bytes");
  std::swap(indices[0], indices[1]);
  EXPECT_EQ(Message(task.client().PullRows(indices, rows).status()),
            "b: it is no table, and is read whole");
}

// ---- forged frames

// A table of four rows of two on the only server, and a vector.
Definition SmallTable(Mode mode) {
  Definition definition = Four(mode);
  definition.state.variables = {{.name = "w", .shape = {4, 2}}, {.name = "b", .shape = {2}}};
  definition.row_gradients = definition.tables = {0};
  return definition;
}

std::string Indices(const Rows& indices) {
  return {reinterpret_cast<const char*>(indices.data()), indices.size() * sizeof(int64_t)};
}
Bytes Count(uint64_t rows, uint32_t shard = 0) {
  return {.index = shard, .slot = wire::kRowCount, .offset = rows, .bytes = ""};
}
rpc::FrameHeader PullRows(uint64_t sequence, int64_t epoch = 1) {
  return {.type = wire::kPullRows,
          .flags = wire::kFirst | wire::kLast,
          .sequence = sequence,
          .value = epoch};
}

// Returns requests for rows that the table does not have, and requests that are malformed.
std::vector<std::vector<Bytes>> ImpossibleRequests() {
  return {
      {{.bytes = Indices({0})}},  // indices without the number of rows
      {Count(0)},
      {Count(5)},  // more rows than the table has
      {Count(~uint64_t{0})},
      {{.slot = wire::kRowCount, .offset = 1, .bytes = Indices({0})}},  // number and rows at once
      {{.offset = 1, .bytes = ""}},                                     // no number
      {Count(1), {.bytes = Indices({4})}},                              // no such row
      {Count(1), {.bytes = Indices({-1})}},
      {Count(2), {.bytes = Indices({1, 1})}},            // twice
      {Count(2), {.bytes = Indices({2, 1})}},            // not ascending
      {Count(1), {.bytes = Indices({0, 1})}},            // more bytes than announced
      {Count(1), {.offset = 8, .bytes = Indices({0})}},  // not starting at the first byte
      {Count(1), {.bytes = "1234"}},                     // a part of an index
      {Count(2), {.bytes = Indices({0})}},               // fewer bytes than announced
      {Count(2), Count(2)},
      {Count(2), {.index = 1, .bytes = Indices({0, 1})}},                      // of another shard
      {Count(1, 1), {.index = 1, .bytes = Indices({0})}},                      // of no table
      {Count(1, 7)},                                                           // of no shard
      {Count(1), {.bytes = Indices({0})}, Count(1), {.bytes = Indices({1})}},  // twice the shard
  };
}

class HostileTableTest : public RawPeerTest, public testing::WithParamInterface<Mode> {
 protected:
  RawPeer& WorkerOf(const Definition& definition) {
    Start();
    RawPeer& chief = Connect("chief", 0);
    EXPECT_EQ(Define(chief, definition, 1), StatusCode::kOk);
    const std::string table = Floats(2, 0) + Floats(2, 1) + Floats(2, 2) + Floats(2, 3);
    EXPECT_EQ(Fill(chief, {{.bytes = table}, {.index = 1, .bytes = Floats(2, 9)}}, 1),
              StatusCode::kOk);
    return Connect("worker", 0);
  }
};

TEST_P(HostileTableTest, ServersRefuseWhatAreNoRowsOfTheTable) {
  RawPeer& worker = WorkerOf(SmallTable(GetParam()));
  uint64_t sequence = 0;
  for (const std::vector<Bytes>& parts : ImpossibleRequests()) {
    EXPECT_EQ(worker.CodeOf(PullRows(++sequence), parts), StatusCode::kInvalidArgument)
        << "request " << sequence;
  }
  EXPECT_EQ(worker.CodeOf(PullRows(++sequence, /*epoch=*/2), {}), StatusCode::kFailedPrecondition);
  // The server still answers a valid request, in which the row count and the indices arrive in
  // separate frames.
  const std::vector<Bytes> first = {Count(2)}, rest = {{.bytes = Indices({1, 3})}};
  rpc::FrameHeader header = PullRows(++sequence);
  header.flags = wire::kFirst;
  ASSERT_EQ(worker.Send(header, first), OkStatus());
  header.flags = wire::kLast;
  const Received values = worker.Ask(header, rest);
  EXPECT_EQ(values.header.type, wire::kValues);
  EXPECT_EQ(values.text, Floats(2, 1) + Floats(2, 3));
}

INSTANTIATE_TEST_SUITE_P(Modes, HostileTableTest,
                         testing::Values(Mode::kAsynchronous, Mode::kSynchronous));

TEST_F(HostileTableTest, AnswersToContributionsLackTheTable) {
  RawPeer& worker = WorkerOf(SmallTable(Mode::kAsynchronous));
  const Received pulled = worker.Ask({.type = wire::kPull, .sequence = 1, .value = 1});
  EXPECT_EQ(pulled.text, Floats(2, 9));
  const Received pushed =
      worker.Ask(Push(2, 0, 1), {Count(0), {.index = 1, .bytes = Floats(2, 1)}});
  EXPECT_EQ(pushed.header.type, wire::kValues);
  EXPECT_EQ(pushed.text, Floats(2, 8));
}

TEST_F(HostileTableTest, OnlyTasksThatTrainReadRows) {
  WorkerOf(SmallTable(Mode::kAsynchronous));
  RawPeer& evaluator = Connect("evaluator", 0);
  EXPECT_EQ(evaluator.CodeOf({.type = wire::kPullRows, .sequence = 1, .value = 1}),
            StatusCode::kPermissionDenied);
}

}  // namespace
}  // namespace tfjob::ps
