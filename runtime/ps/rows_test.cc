// Tests how servers apply gradients that arrive as rows, and which of these gradients they reject.
#include <gtest/gtest.h>

#include <map>
#include <thread>

#include "runtime/ps/test_peer.h"
#include "runtime/ps/test_tasks.h"
#include "runtime/ps/wire.h"

namespace tfjob::ps {
namespace {

constexpr int64_t kRows = 3000, kCols = 250;

// Defines a table of 3 MB in shards of 400 KB, and a vector.
Definition TableAndVector(Mode mode) {
  Definition definition;
  definition.state.variables = {{.name = "table", .shape = {kRows, kCols}},
                                {.name = "b", .shape = {7}}};
  definition.state.optimizer = optimizer::Optimizer::Default(optimizer::Kind::kAdagrad);
  definition.state.optimizer.learning_rate = 0.5;
  definition.mode = mode;
  definition.max_shard_bytes = 400'000;
  definition.row_gradients = {0};
  return definition;
}

// The gradient of a task in a step: some rows of the table, in ascending order.
struct RowGradient {
  std::vector<int64_t> indices;
  std::vector<float> values;
  std::vector<float> vector = std::vector<float>(7, 1);

  explicit RowGradient(std::vector<int64_t> rows) : indices(std::move(rows)) {
    for (const int64_t row : indices) {
      for (int64_t c = 0; c < kCols; ++c)
        values.push_back(static_cast<float>(std::sin(static_cast<double>(row * 7 + c))));
    }
  }
  // Adds padding rows, which are ignored.
  void Pad(size_t rows) {
    indices.resize(indices.size() + rows, -1);
    values.resize(indices.size() * kCols, std::nanf(""));
  }
};

class RowTask {
 public:
  explicit RowTask(const Definition& definition)
      : definition_(definition), table_(DType::kFloat32, {kRows, kCols}), b_(DType::kFloat32, {7}) {
    values_ = {table_.bytes(), b_.bytes()};
  }
  Status Join(ClientOptions options) {
    options.definition = definition_;
    ASSIGN_OR_RETURN(client_, ParameterClient::Create(std::move(options)));
    return client_->WaitReady(values_).status();
  }
  Status Train(const RowGradient& gradient) {
    const std::vector<std::span<const std::byte>> gradients = {
        std::as_bytes(std::span(gradient.values)), std::as_bytes(std::span(gradient.vector))};
    const std::vector<std::span<const int64_t>> indices = {gradient.indices, {}};
    RETURN_IF_ERROR(client_->BeginStep(gradients, values_, 0, indices));
    client_->MarkReady(0);
    return client_->EndStep().status();
  }
  std::vector<float> Table() const {
    const auto values = table_.data<float>();
    return {values.begin(), values.end()};
  }
  ParameterClient& client() { return *client_; }

 private:
  const Definition definition_;
  Tensor table_, b_;
  std::vector<std::span<std::byte>> values_;
  std::unique_ptr<ParameterClient> client_;
};

// Applies the mean of the gradients to a table of ones, using plain loops.
class Reference {
 public:
  void Step(const std::vector<RowGradient>& gradients) {
    std::map<int64_t, std::vector<double>> sums;
    for (const RowGradient& gradient : gradients) {
      for (size_t i = 0; i < gradient.indices.size() && gradient.indices[i] >= 0; ++i) {
        std::vector<double>& sum = sums[gradient.indices[i]];
        sum.resize(kCols);
        for (size_t c = 0; c < kCols; ++c) sum[c] += gradient.values[i * kCols + c];
      }
    }
    for (const auto& [row, sum] : sums) {
      for (size_t c = 0; c < kCols; ++c) {
        const double g = sum[c] / static_cast<double>(gradients.size());
        const size_t at = static_cast<size_t>(row * kCols) + c;
        squares_[at] += g * g;
        table_[at] -= 0.5 * g / std::sqrt(squares_[at] + 1e-7);
      }
    }
  }
  void Expect(const std::vector<float>& table) const {
    ASSERT_EQ(table.size(), table_.size());
    for (size_t i = 0; i < table.size(); ++i)
      ASSERT_NEAR(table[i], table_[i], 1e-5) << "row " << i / kCols;
  }

 private:
  std::vector<double> table_ = std::vector<double>(kRows * kCols, 1);
  std::vector<double> squares_ = std::vector<double>(kRows * kCols, 0.1);
};

std::vector<int64_t> EveryNth(int64_t n, int64_t first = 0) {
  std::vector<int64_t> rows;
  for (int64_t row = first; row < kRows; row += n) rows.push_back(row);
  return rows;
}

class RowsTest : public ParameterServerTest {};

TEST_F(RowsTest, AsynchronousServersApplyThemAsTheyArrive) {
  StartServers(2);
  RowTask task(TableAndVector(Mode::kAsynchronous));
  ASSERT_EQ(task.Join(Chief(TableAndVector(Mode::kAsynchronous), 1)), OkStatus());
  Reference reference;
  // Try gradients with all rows, a few rows, rows of one shard only, and no rows.
  for (const std::vector<int64_t>& rows :
       {EveryNth(1), EveryNth(97, 5), std::vector<int64_t>{1}, std::vector<int64_t>{}}) {
    RowGradient gradient(rows);
    gradient.Pad(3);
    ASSERT_EQ(task.Train(gradient), OkStatus());
    reference.Step({gradient});
    reference.Expect(task.Table());
  }
}

TEST_F(RowsTest, SynchronousServersApplyTheMeanOverAllTasks) {
  StartServers(2);
  Definition definition = TableAndVector(Mode::kSynchronous);
  definition.replicas_to_aggregate = 3;
  definition.tasks = {{"chief", 0}, {"worker", 0}, {"worker", 1}};
  definition.start_timeout = 30s;
  std::vector<RowGradient> gradients = {RowGradient(EveryNth(3)), RowGradient(EveryNth(5)),
                                        RowGradient({})};
  gradients[2].Pad(1);  // a gradient without rows also counts in the mean
  std::vector<std::unique_ptr<RowTask>> tasks;
  for (int i = 0; i < 3; ++i) tasks.push_back(std::make_unique<RowTask>(definition));
  std::vector<std::thread> threads;
  for (size_t i = 0; i < 3; ++i) {
    threads.emplace_back([&, i] {
      const ClientOptions options = i == 0 ? Chief(definition, 1) : Worker(static_cast<int>(i) - 1);
      ASSERT_EQ(tasks[i]->Join(options), OkStatus());
      for (int step = 0; step < 3; ++step) ASSERT_EQ(tasks[i]->Train(gradients[i]), OkStatus());
    });
  }
  for (std::thread& thread : threads) thread.join();
  Reference reference;
  for (int step = 0; step < 3; ++step) reference.Step(gradients);
  reference.Expect(tasks[0]->Table());
  EXPECT_EQ(tasks[0]->Table(), tasks[2]->Table());
}

TEST_F(RowsTest, TheClientRefusesOtherValuesThanItsRowsHave) {
  StartServers(1);
  RowTask task(TableAndVector(Mode::kAsynchronous));
  ASSERT_EQ(task.Join(Chief(TableAndVector(Mode::kAsynchronous), 1)), OkStatus());
  RowGradient gradient({1, 2});
  gradient.values.pop_back();
  EXPECT_EQ(Message(task.Train(gradient)), "table: the gradient has 1996 bytes, its 2 rows 2000");
}

// ---- forged frames

// Defines a table of four rows with two elements each, for one server and with learning rate 1.
Definition SmallTable(Mode mode) {
  Definition definition = Four(mode);
  definition.state.variables = {{.name = "w", .shape = {4, 2}}};
  definition.row_gradients = {0};
  return definition;
}

std::string Indices(const std::vector<int64_t>& indices) {
  return {reinterpret_cast<const char*>(indices.data()), indices.size() * sizeof(int64_t)};
}
Bytes Count(uint64_t rows) {
  return {.slot = wire::kRowCount, .offset = rows, .bytes = ""};
}
// Returns an encoded update that sets every gradient value of these rows to 1.
std::string Rows(const std::vector<int64_t>& indices) {
  return Indices(indices) + Floats(indices.size() * 2, 1);
}

// Returns contributions that are not valid rows of the table.
std::vector<std::vector<Bytes>> ImpossibleRows() {
  return {
      {{.bytes = Floats(8, 1)}},  // rows without their number
      {Count(5)},                 // more rows than the table has
      {Count(~uint64_t{0})},
      {{.slot = wire::kRowCount, .offset = 1, .bytes = Rows({0})}},  // number and rows at once
      {Count(1), {.bytes = Rows({4})}},                              // no such row
      {Count(1), {.bytes = Rows({-1})}},
      {Count(2), {.bytes = Rows({1, 1})}},               // the same row twice
      {Count(2), {.bytes = Rows({2, 1})}},               // not ascending
      {Count(1), {.bytes = Rows({0, 1})}},               // more bytes than announced
      {Count(1), {.offset = 8, .bytes = Floats(2, 1)}},  // does not start at the first byte
      {Count(2), Count(2)},
      {Count(2), {.bytes = Indices({0, 1})}, {.offset = 16, .bytes = ""}},
      {Count(2), {.index = 1, .bytes = Rows({0, 1})}},  // not the counted shard
  };
}

class HostileRowsTest : public RawPeerTest {
 protected:
  RawPeer& WorkerOf(Mode mode) {
    Start();
    RawPeer& chief = Connect("chief", 0);
    EXPECT_EQ(Define(chief, SmallTable(mode), 1), StatusCode::kOk);
    EXPECT_EQ(Fill(chief, {{.bytes = Floats(8, 0)}}, 1), StatusCode::kOk);
    return Connect("worker", 0);
  }
  // Sends all of ImpossibleRows(). Returns the number of the last contribution.
  static uint64_t ExpectRefusals(RawPeer& worker) {
    uint64_t sequence = 0;
    for (const std::vector<Bytes>& parts : ImpossibleRows()) {
      EXPECT_EQ(worker.CodeOf(Push(++sequence, 0, 1), parts), StatusCode::kInvalidArgument)
          << "contribution " << sequence;
    }
    return sequence;
  }
};

TEST_F(HostileRowsTest, AsynchronousServersRefuseWhatAreNoRowsOfTheShard) {
  RawPeer& worker = WorkerOf(Mode::kAsynchronous);
  const uint64_t last = ExpectRefusals(worker);
  // The table is unchanged, and still accepts rows.
  const Received values = worker.Ask(Push(last + 1, 0, 1), {Count(2), {.bytes = Rows({1, 3})}});
  EXPECT_EQ(values.header.type, wire::kValues);
  EXPECT_EQ(values.text, Floats(2, 0) + Floats(2, -1) + Floats(2, 0) + Floats(2, -1));
}

TEST_F(HostileRowsTest, SynchronousServersRefuseWhatAreNoRowsOfTheShard) {
  ExpectRefusals(WorkerOf(Mode::kSynchronous));
  EXPECT_EQ(ps_->State().global_step, 0);
}

TEST_F(HostileRowsTest, RefusesRowsOfAVariableWithoutThem) {
  Start();
  Bring(Connect("chief", 0), Mode::kAsynchronous, 1);
  RawPeer& worker = Connect("worker", 0);
  EXPECT_EQ(worker.CodeOf(Push(1, 0, 1), {Count(1), {.bytes = Rows({0})}}),
            StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace tfjob::ps
