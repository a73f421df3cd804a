// Tests tables, from which tasks read only the rows that they need. Covers reading rows, recovery
// from losses, requests that clients refuse, and the chief's copies of tables.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>
#include <utility>

#include "runtime/ps/test_peer.h"
#include "runtime/ps/test_relay.h"
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

// Returns a state in which all values of row r are r in the trained table, and -r in the frozen
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
    options.on_event = client_events.sink();
    ASSIGN_OR_RETURN(client_, ParameterClient::Create(std::move(options)));
    return client_->WaitReady(values_).status();
  }
  // Reads rows of both tables. Appends `padding` unused entries (-1) to the request for each table.
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
  // Checks the rows that were read last. A value must be its row's number minus `subtracted` in the
  // trained table, and the negated row number in the frozen table.
  void ExpectRows(float subtracted) const {
    for (size_t v = 0; v < 3; v += 2) {
      const size_t cols = v == 0 ? kCols : 2;
      for (size_t i = 0; i < rows_[v].size(); ++i) {
        const int64_t row = indices_[v][i / cols];
        const float number = static_cast<float>(row);
        if (row < 0) continue;
        // Allow for rounding in the mean of three ones.
        ASSERT_NEAR(rows_[v][i], v == 0 ? number - subtracted : -number, 1e-3) << "row " << row;
      }
    }
  }
  float vector() const { return b_[0]; }
  ParameterClient& client() { return *client_; }

  Events client_events;

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
  // Read all rows (which need more than one frame), a few rows, rows of one shard only, and no
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

// Streams the values of a tensor, and counts the pieces.
class StreamedTensor : public state::StreamedValue {
 public:
  StreamedTensor(Tensor tensor, std::atomic<int>& reads)
      : tensor_(std::move(tensor)), reads_(reads) {}
  Status Read(int64_t offset, std::span<std::byte> to) const override {
    ++reads_;
    std::ranges::copy(tensor_.bytes().subspan(static_cast<size_t>(offset), to.size()), to.begin());
    return OkStatus();
  }

 private:
  const Tensor tensor_;
  std::atomic<int>& reads_;
};

// The connections break while the chief streams the table to the servers.
TEST_F(TableTest, AFillThatBreaksIsRepeated) {
  StartServers(2);
  const Definition definition = Tables(Mode::kSynchronous);
  BreakingConnector breaking;
  std::atomic<int> fills = 0, reads = 0;
  ClientOptions options = ChiefOf(definition);
  options.connector = &breaking;
  options.provide_state = [&]() -> StatusOr<state::Snapshot> {
    ++fills;
    state::Snapshot snapshot = NumberedRows(definition);
    state::VariableState& table = snapshot.variables[0];
    table.streamed = {
        std::make_shared<StreamedTensor>(std::exchange(table.value, Tensor()), reads)};
    return snapshot;
  };
  breaking.BreakAfterWrites(8);
  TableTask task(definition);
  ASSERT_EQ(task.Join(options), OkStatus());
  EXPECT_GE(fills, 2);
  EXPECT_GT(reads, 8) << "eight shards, some of them twice";
  ASSERT_EQ(task.Pull(EveryNth(1), EveryNth(11)).value(), true);
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

// ---- copies of the state

// Reads all elements of the table, or of one of its slots, from the servers.
StatusOr<std::vector<float>> Read(const state::Snapshot& snapshot, size_t slot = 0) {
  std::vector<float> values(kRows * kCols);
  RETURN_IF_ERROR(
      snapshot.variables[0].streamed[slot]->Read(0, std::as_writable_bytes(std::span(values))));
  return values;
}

// Expects all elements of each row to equal the row's number minus `subtracted`.
void ExpectTable(const state::Snapshot& snapshot, float subtracted) {
  const StatusOr<std::vector<float>> values = Read(snapshot);
  ASSERT_TRUE(values.ok()) << values.status();
  for (size_t i = 0; i < values->size(); ++i)
    ASSERT_EQ((*values)[i], static_cast<float>(i / kCols) - subtracted) << "element " << i;
}

class TableCopyTest : public TableTest, public testing::WithParamInterface<Mode> {
 protected:
  void SetUp() override {
    StartServers(2);
    ASSERT_EQ(task_.Join(ChiefOf(definition_)), OkStatus());
  }
  const Definition definition_ = Tables(GetParam());
  TableTask task_{definition_};
};

TEST_P(TableCopyTest, HasTheStateOfItsStepWhileTrainingGoesOn) {
  std::vector<state::Snapshot> copies;
  for (int step = 0; step < 4; ++step) {
    StatusOr<state::Snapshot> copy = task_.client().TakeSnapshot();
    ASSERT_TRUE(copy.ok()) << copy.status();
    EXPECT_EQ(copy->global_step, step);
    EXPECT_EQ(copy->variables[0].value.num_elements(), 0) << "the table is not in this task";
    EXPECT_EQ(copy->variables[1].value.data<float>()[0], -static_cast<float>(step));
    copies.push_back(*std::move(copy));
    ASSERT_TRUE(task_.Train(EveryNth(1)).ok());
  }
  for (size_t i = copies.size(); i-- > 0;) ExpectTable(copies[i], static_cast<float>(i));
  // A piece may start and end anywhere, and may span shards and servers.
  std::vector<float> piece(200'000);
  ASSERT_EQ(copies[1].variables[0].streamed[0]->Read(4 * 77'777,
                                                     std::as_writable_bytes(std::span(piece))),
            OkStatus());
  EXPECT_EQ(piece.front(), 311 - 1);
  EXPECT_EQ(piece.back(), 1111 - 1);
}

TEST_P(TableCopyTest, FillsTheServersOfAnotherJob) {
  ASSERT_TRUE(task_.Train(EveryNth(1)).ok());
  StatusOr<state::Snapshot> copy = task_.client().TakeSnapshot();
  ASSERT_TRUE(copy.ok()) << copy.status();
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(task_.Train(EveryNth(2)).ok());
  // The servers replace their state with the copy that they keep.
  ASSERT_EQ(task_.client().Restore(*copy), OkStatus());
  copy = task_.client().TakeSnapshot();
  ASSERT_TRUE(copy.ok()) << copy.status();
  EXPECT_EQ(copy->global_step, 1);
  ExpectTable(*copy, 1);
}

TEST_P(TableCopyTest, IsReadByAnotherThread) {
  StatusOr<state::Snapshot> copy = task_.client().TakeSnapshot();
  ASSERT_TRUE(copy.ok()) << copy.status();
  std::atomic<bool> read = false;
  std::thread reader([&] {
    for (int i = 0; i < 3; ++i) ExpectTable(*copy, 0);
    read = true;
  });
  while (!read) {
    if (!task_.Pull(EveryNth(5), {1}).ok() || !task_.Train(EveryNth(3)).ok()) break;
  }
  reader.join();
}

TEST_P(TableCopyTest, IsLostWithAServer) {
  StatusOr<state::Snapshot> copy = task_.client().TakeSnapshot();
  ASSERT_TRUE(copy.ok()) << copy.status();
  EXPECT_FALSE(state::IsLost(*copy));
  tasks_[1]->Kill();
  EXPECT_EQ(Read(*copy).status().code(), StatusCode::kUnavailable);
  EXPECT_TRUE(state::IsLost(*copy));
  tasks_[1]->Start(2);
  ASSERT_TRUE(task_.Train(EveryNth(1)).ok());  // the server is filled again
  EXPECT_EQ(Read(*copy).status().code(), StatusCode::kNotFound);
  copy = task_.client().TakeSnapshot();
  ASSERT_TRUE(copy.ok()) << copy.status();
  EXPECT_TRUE(Read(*copy).ok());
}

TEST_P(TableCopyTest, OutlivesTheTaskButCannotBeReadThen) {
  StatusOr<state::Snapshot> copy = state::Snapshot();
  {
    TableTask task(definition_);
    ASSERT_EQ(task.Join(ChiefOf(definition_)), OkStatus());
    copy = task.client().TakeSnapshot();
    ASSERT_TRUE(copy.ok()) << copy.status();
  }
  EXPECT_EQ(Message(Read(*copy).status()), "the copy of the state is gone: its task has ended");
}

// A server that was asked to stop exits as soon as the copy of the tables is dropped, but not
// earlier.
TEST_P(TableCopyTest, KeepsAServerThatWasAskedToEnd) {
  std::vector<std::thread> ends;
  for (auto& task : tasks_) ends.emplace_back([&task] { task->ps().End(60s); });
  for (int i = 0; i < 2; ++i)
    ASSERT_TRUE(task_.client_events.Await(state::PeerEvent::Kind::kServerEnding, StrCat("ps ", i)));
  StatusOr<state::Snapshot> copy = task_.client().TakeSnapshot();
  ASSERT_TRUE(copy.ok()) << copy.status();
  ExpectTable(*copy, 0);
  copy = state::Snapshot();
  const SteadyTime begin = SteadyNow();
  for (std::thread& end : ends) end.join();
  EXPECT_LT(SteadyNow() - begin, 30s);
}

// The connection breaks within the header and within the bytes of a piece.
TEST_F(TableTest, APieceThatBreaksOffCannotBeRead) {
  StartServers(1);
  BreakingRelay relay(servers_[0]);
  const Definition definition = Tables(Mode::kAsynchronous);
  ClientOptions options = ChiefOf(definition);
  options.servers = {relay.address()};
  TableTask task(definition);
  ASSERT_EQ(task.Join(options), OkStatus());
  for (const int64_t bytes : {20, 200'000, 900'000}) {
    StatusOr<state::Snapshot> copy = task.client().TakeSnapshot();
    ASSERT_TRUE(copy.ok()) << copy.status();
    const int before = relay.broken;
    relay.BreakAfterBytesToClients(bytes);
    EXPECT_EQ(Read(*copy).status().code(), StatusCode::kUnavailable) << bytes;
    EXPECT_EQ(relay.broken, before + 1) << "nothing broke at " << bytes;
    ASSERT_EQ(task.Pull(EveryNth(4), {1}).value(), true);  // connects again
    EXPECT_EQ(Read(*copy).status().code(), StatusCode::kNotFound) << bytes;
    copy = task.client().TakeSnapshot();
    ASSERT_TRUE(copy.ok()) << copy.status();
    ExpectTable(*copy, 0);
  }
}

// The last bytes of a piece do not arrive before the server is considered lost.
TEST_F(TableTest, AClientThatIsDestroyedDoesNotWaitForAPiece) {
  StartServers(1);
  BreakingRelay relay(servers_[0]);
  const Definition definition = Tables(Mode::kAsynchronous);
  ClientOptions options = ChiefOf(definition);
  options.servers = {relay.address()};
  auto task = std::make_unique<TableTask>(definition);
  ASSERT_EQ(task->Join(options), OkStatus());
  const StatusOr<state::Snapshot> copy = task->client().TakeSnapshot();
  ASSERT_TRUE(copy.ok()) << copy.status();
  relay.StallAfterBytesToClients(200'000);
  std::thread reader([&] { EXPECT_EQ(Read(*copy).status().code(), StatusCode::kUnavailable); });
  while (relay.broken == 0) std::this_thread::yield();
  const SteadyTime begin = SteadyNow();
  task.reset();
  EXPECT_LT(SteadyNow() - begin, 5s);
  reader.join();
}

INSTANTIATE_TEST_SUITE_P(Modes, TableCopyTest,
                         testing::Values(Mode::kAsynchronous, Mode::kSynchronous));

}  // namespace
}  // namespace tfjob::ps
