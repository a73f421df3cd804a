#include "runtime/ps/server/store.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "runtime/ps/server/table_copy.h"

namespace tfjob::ps {
namespace {

using protocol::Name;

Name Of(int worker, uint64_t sequence) {
  return {{"worker", worker}, 1, sequence};
}

template <typename T>
std::span<const std::byte> Bytes(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}

// Tests a store whose variables cover every kind of update. Each variable has one shard, and all
// values are initially zero.
class StoreTest : public testing::Test {
 protected:
  StoreTest() { FillWithZeros(store_); }
  static void FillWithZeros(Store& store) {
    for (int shard : store.shards()) {
      const auto index = static_cast<uint32_t>(shard);
      std::ranges::fill(store.FillTarget(index, 0, 0, store.bytes_of(shard)), std::byte{0});
    }
  }
  static Definition Kinds() {
    Definition definition;
    definition.state.variables = {
        {.name = "w", .shape = {3}},
        {.name = "d", .dtype = DType::kFloat64, .shape = {2}},
        {.name = "mean", .shape = {2}, .update = state::Update::kAssign},
        {.name = "count", .dtype = DType::kInt64, .update = state::Update::kAssignAdd},
        {.name = "flag", .dtype = DType::kBool, .update = state::Update::kAssign},
        {.name = "none", .shape = {0}}};
    definition.state.optimizer.learning_rate = 0.5;
    return definition;
  }
  template <typename T>
  std::vector<T> Value(int shard) {
    std::vector<T> value(store_.bytes_of(shard) / sizeof(T));
    store_.CopyValue(shard, 0, std::as_writable_bytes(std::span(value)));
    return value;
  }

  Store store_{Kinds(), 0, 1, 1};
  kernels::Stream stream_;
};

TEST_F(StoreTest, UpdatesEachKindOnceAName) {
  for (int repeats = 0; repeats < 2; ++repeats) {
    store_.Apply(0, Of(0, 1), Bytes<float>({2, 4, 6}), 0, stream_);
    store_.Apply(1, Of(0, 1), Bytes<double>({2, 4}), 0, stream_);
    store_.Apply(2, Of(0, 1), Bytes<float>({7, 8}), 0, stream_);
    store_.Apply(3, Of(0, 1), Bytes<int64_t>({5}), 0, stream_);
    store_.Apply(4, Of(0, 1), Bytes<uint8_t>({1}), 0, stream_);
    store_.Apply(5, Of(0, 1), {}, 0, stream_);
  }
  EXPECT_EQ(Value<float>(0), (std::vector<float>{-1, -2, -3}));
  EXPECT_EQ(Value<double>(1), (std::vector<double>{-1, -2}));
  EXPECT_EQ(Value<float>(2), (std::vector<float>{7, 8}));
  EXPECT_EQ(Value<int64_t>(3), std::vector<int64_t>{5});
  EXPECT_EQ(Value<uint8_t>(4), std::vector<uint8_t>{1});
  store_.Apply(0, Of(0, 2), {}, 0, stream_);  // no update this time
  EXPECT_EQ(Value<float>(0), (std::vector<float>{-1, -2, -3}));
}

TEST_F(StoreTest, ClipsTheMeanOfGradientsOnly) {
  Definition definition = Kinds();
  definition.mode = Mode::kSynchronous;
  definition.clipping = {optimizer::ClipKind::kNorm, 2};
  Store store(definition, 0, 1, 1);
  FillWithZeros(store);
  // The sums of two updates. The means are (3, 0, 4), (1, 2) and, for a variable without gradients,
  // (30, 40).
  std::vector<float> w = {6, 0, 8}, mean = {60, 80};
  std::vector<double> d = {2, 4};
  EXPECT_EQ(store.SquaresOfMean(0, Bytes(w), 2), 25);
  EXPECT_EQ(store.SquaresOfMean(1, Bytes(d), 2), 5);
  EXPECT_EQ(store.SquaresOfMean(2, Bytes(mean), 2), 0);
  EXPECT_EQ(store.SquaresOfMean(0, {}, 0), 0) << "no contribution has an update";
  const std::vector<double> squares = {25, 1, 0, 0, 0, 0};
  EXPECT_EQ(store.NormOf(1), 1u);
  EXPECT_EQ(store.FactorOf(0, squares), 0.4);
  EXPECT_EQ(store.FactorOf(1, squares), 1);
  EXPECT_EQ(store.FactorOf(2, {}), 1);
  const Name names[] = {Of(0, 1)};
  const std::byte* updates[] = {Bytes(w).data()};
  const int counts[] = {2};
  std::vector<std::byte> sum(12);
  store.ApplyMean(0, names, updates, sum, 0, stream_, counts, store.FactorOf(0, squares));
  std::vector<float> value(3);
  store.CopyValue(0, 0, std::as_writable_bytes(std::span(value)));
  EXPECT_FLOAT_EQ(value[0], -0.6f);
  EXPECT_FLOAT_EQ(value[2], -0.8f);
  EXPECT_TRUE(store.ClipMean(0, std::as_writable_bytes(std::span(w)), 2));
  EXPECT_EQ(w, (std::vector<float>{2, 0, 2}));
  EXPECT_FALSE(store.ClipMean(2, std::as_writable_bytes(std::span(mean)), 2));
  EXPECT_EQ(mean, (std::vector<float>{60, 80}));
}

TEST_F(StoreTest, ReadsNoUpdateBeyondItsShard) {
  // Each of the two updates ends at the last readable byte before an inaccessible page.
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const float update[] = {1, 2, 3};
  std::byte* pages[2];
  const std::byte* updates[2];
  for (int i = 0; i < 2; ++i) {
    void* memory =
        mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    pages[i] = static_cast<std::byte*>(memory);
    ASSERT_EQ(mprotect(pages[i] + page, page, PROT_NONE), 0);
    std::memcpy(pages[i] + page - sizeof update, update, sizeof update);
    updates[i] = pages[i] + page - sizeof update;
  }
  std::vector<std::byte> sum(2 * page);
  store_.ApplyMean(0, std::vector{Of(0, 1), Of(1, 1)}, updates, sum, 0, stream_);
  EXPECT_EQ(Value<float>(0), (std::vector<float>{-0.5, -1, -1.5}));
  for (std::byte* memory : pages) munmap(memory, 2 * page);
}

TEST_F(StoreTest, TakesTheMeanOfThoseThatHaveOne) {
  const std::vector<Name> names = {Of(0, 1), Of(1, 1), Of(2, 1)};
  // The scratch memory is larger than any shard, as in a server.
  std::vector<std::byte> sum(64, std::byte{0xff});
  const std::vector<float> a = {1, 2, 3}, b = {3, 4, 5};
  auto mean = [&](int shard, const auto& first, const auto& second) {
    const std::byte* updates[] = {Bytes(first).data(), nullptr, Bytes(second).data()};
    store_.ApplyMean(shard, names, updates, sum, 0, stream_);
  };
  mean(0, a, b);
  EXPECT_EQ(Value<float>(0), (std::vector<float>{-1, -1.5, -2}));
  mean(0, a, b);  // all of these updates were already applied
  EXPECT_EQ(Value<float>(0), (std::vector<float>{-1, -1.5, -2}));
  mean(2, a, b);
  EXPECT_EQ(Value<float>(2), (std::vector<float>{2, 3}));
  mean(3, std::vector<int64_t>{4}, std::vector<int64_t>{6});
  EXPECT_EQ(Value<int64_t>(3), std::vector<int64_t>{5});
  const std::byte* single[] = {nullptr, Bytes(a).data(), nullptr};
  store_.ApplyMean(0, std::vector{Of(0, 2), Of(1, 2), Of(2, 2)}, single, sum, 1, stream_);
  EXPECT_EQ(Value<float>(0), (std::vector<float>{-1.5, -2.5, -3.5}));
}

TEST_F(StoreTest, CountsANameOnceAndKeepsItsLedger) {
  EXPECT_EQ(store_.Count(Of(0, 1), 9), 0);
  EXPECT_EQ(store_.Count(Of(1, 1)), 1);
  EXPECT_EQ(store_.Count(Of(0, 1), 10), 2);
  EXPECT_EQ(store_.step(), 2);
  store_.Apply(0, Of(0, 1), Bytes<float>({2, 4, 6}), 0, stream_);
  std::string ledger = store_.CounterLedger();
  std::vector<std::byte> state(64);
  store_.CopyState(0, state.data(), ledger);
  Store restored(Kinds(), 0, 1, 2), older(Kinds(), 0, 1, 2);
  ASSERT_EQ(restored.SetLedger(ledger), OkStatus());
  EXPECT_EQ(restored.Incarnations(), store_.Incarnations());
  EXPECT_EQ(restored.Incarnations().size(), 2u);
  EXPECT_FALSE(restored.Apply(0, Of(0, 1), Bytes<float>({2, 4, 6}), 0, stream_));
  EXPECT_TRUE(restored.Apply(2, Of(0, 1), Bytes<float>({2, 4}), 0, stream_));
  EXPECT_EQ(restored.Count(Of(1, 1)), 0);
  EXPECT_EQ(restored.step(), 0);
  // Older versions also wrote a line that identifies the run.
  ASSERT_EQ(older.SetLedger("-2 uid 7 0 0\n" + ledger), OkStatus());
  EXPECT_EQ(older.Incarnations().size(), 2u);
  EXPECT_FALSE(restored.SetLedger("0 worker x").ok());
  EXPECT_FALSE(restored.SetLedger("what").ok());
  EXPECT_FALSE(restored.SetLedger("0 worker 0 9223372036854775807 1\n").ok());
  EXPECT_FALSE(restored.SetLedger("0 worker 0 -1 1\n").ok());
}

TEST_F(StoreTest, KeepsThePositionsOfTheTasks) {
  EXPECT_EQ(store_.Count(Of(0, 1), 9), 0);
  EXPECT_EQ(store_.Count(Of(0, 1), 10), 1) << "a repeated contribution";
  store_.Drew(Of(1, 1).worker, 4);
  store_.Drew(Of(1, 1).worker, 3);
  Store restored(Kinds(), 0, 1, 2);
  ASSERT_EQ(restored.SetLedger(store_.CounterLedger()), OkStatus());
  for (Store* store : {&store_, &restored}) {
    EXPECT_EQ(store->DrawnBy(Of(0, 1).worker), 9);
    EXPECT_EQ(store->DrawnBy(Of(1, 1).worker), 4);
    EXPECT_EQ(store->DrawnBy(Of(2, 1).worker), 0);
  }
  ASSERT_EQ(restored.SetLedger("-3 worker 2 0 18446744073709551615\n"), OkStatus());
  EXPECT_EQ(restored.DrawnBy(Of(2, 1).worker), int64_t{1} << 60);
}

TEST_F(StoreTest, DerivesPositionsFromTheStepOfAnOlderLedger) {
  Definition definition = Kinds();
  definition.tasks = {{"chief", 0}, {"worker", 0}, {"worker", 1}};
  definition.replicas_to_aggregate = 2;
  for (const Mode mode : {Mode::kAsynchronous, Mode::kSynchronous}) {
    definition.mode = mode;
    Store older(definition, 0, 1, 2);
    older.step() = 30;
    ASSERT_EQ(older.SetLedger("0 worker 0 1 5\n"), OkStatus());
    EXPECT_EQ(older.DrawnBy({"worker", 1}), mode == Mode::kSynchronous ? 20 : 10);
    EXPECT_EQ(older.DrawnBy({"worker", 2}), 0);
  }
}

TEST_F(StoreTest, RefusesFillsThatDoNotFit) {
  EXPECT_TRUE(store_.CheckRange(0, 0, 4, 8).ok());
  EXPECT_FALSE(store_.CheckRange(0, 0, 8, 8).ok());
  EXPECT_FALSE(store_.CheckRange(0, 0, ~uint64_t{0}, 8).ok());
  EXPECT_FALSE(store_.CheckRange(0, 1, 0, 4).ok());  // SGD has no slots
  EXPECT_FALSE(store_.CheckRange(6, 0, 0, 0).ok());
  const Store empty(Kinds(), 0, 1, 1);
  EXPECT_FALSE(empty.filled());
}

TEST_F(StoreTest, IsFilledByEveryByteOnceAndInOrder) {
  EXPECT_TRUE(store_.filled());
  Store twice(Kinds(), 0, 1, 1), reversed(Kinds(), 0, 1, 1);
  for (int shard = 1; shard < 6; ++shard) {
    for (Store* store : {&twice, &reversed}) {
      store->FillTarget(static_cast<uint32_t>(shard), 0, 0, store->bytes_of(shard));
    }
  }
  // Send as many bytes as the value has, but some of them twice and others not at all.
  twice.FillTarget(0, 0, 0, 6);
  twice.FillTarget(0, 0, 0, 6);
  EXPECT_FALSE(twice.filled());
  twice.FillTarget(0, 0, 6, 6);
  EXPECT_TRUE(twice.filled());
  reversed.FillTarget(0, 0, 6, 6);
  reversed.FillTarget(0, 0, 0, 6);
  EXPECT_FALSE(reversed.filled());
}

TEST_F(StoreTest, KnowsItsSizeBeforeItIsMade) {
  Definition definition = Kinds();
  definition.state.optimizer = optimizer::Optimizer::Default(optimizer::Kind::kAdam);
  // Every value and slot is padded to a multiple of 64 bytes; the two variables with gradients have
  // two slots each.
  EXPECT_EQ(Store::BytesFor(definition, 0, 1), 64 * (3 + 3 + 1 + 1 + 1));
  EXPECT_EQ(Store::BytesFor(definition, 0, 2) + Store::BytesFor(definition, 1, 2), 64 * 9);
}

// ---- keeping the state of a table

class KeptTableTest : public testing::Test {
 protected:
  KeptTableTest() {
    definition_.state.variables = {{.name = "table", .shape = {4, 2}}, {.name = "b", .shape = {2}}};
    definition_.state.optimizer = optimizer::Optimizer::Default(optimizer::Kind::kAdagrad);
    definition_.state.optimizer.learning_rate = 1;
    definition_.max_shard_bytes = 16;  // two shards of two rows
    definition_.row_gradients = definition_.tables = {0};
    store_ = std::make_shared<Store>(definition_, 0, 1, 1);
    for (const int shard : store_->shards()) {
      for (int slot = 0; slot <= store_->slots_of(shard); ++slot) {
        const std::span<std::byte> to = store_->FillTarget(
            static_cast<uint32_t>(shard), static_cast<uint32_t>(slot), 0, store_->bytes_of(shard));
        std::ranges::fill(to, std::byte{0});
      }
    }
  }
  // Adds a gradient of 1 to the first row of a shard of the table.
  void Train(int shard, uint64_t sequence) {
    std::vector<std::byte> update(sizeof(int64_t) + 2 * sizeof(float));
    const int64_t row = 2 * shard;
    const float ones[] = {1, 1};
    std::memcpy(update.data(), &row, sizeof(row));
    std::memcpy(update.data() + sizeof(row), ones, sizeof(ones));
    ASSERT_TRUE(store_->ApplyRows(shard, Of(0, sequence), update, 1, 0, stream_));
  }
  static std::vector<float> Read(const TableCopy& copy, uint32_t shard, uint32_t slot) {
    std::vector<float> values(4);
    EXPECT_EQ(copy.Read(shard, slot, 0, std::as_writable_bytes(std::span(values))), OkStatus());
    return values;
  }

  Definition definition_;
  std::shared_ptr<Store> store_;
  kernels::Stream stream_;
  std::string ledger_;
};

TEST_F(KeptTableTest, HasTheStateOfItsMoment) {
  // `once` is the expected accumulator (the sum of squares) after one update.
  const std::vector<float> zeros(4), once = {1, 1, 0, 0};
  const TableCopy before(store_, ledger_);
  EXPECT_EQ(ledger_, "");
  Train(0, 1);
  std::string ledger;
  const TableCopy between(store_, ledger);
  EXPECT_EQ(ledger, "0 worker 0 1 1\n");
  Train(0, 2);
  Train(1, 2);
  const TableCopy after(store_, ledger_);
  for (int repeat = 0; repeat < 2; ++repeat) {
    EXPECT_EQ(Read(before, 0, 0), zeros);
    EXPECT_EQ(Read(before, 0, 1), zeros);
    EXPECT_EQ(Read(before, 1, 1), zeros);
    EXPECT_EQ(Read(between, 0, 1), once);
    EXPECT_NEAR(Read(between, 0, 0)[0], -1, 1e-6);
    EXPECT_EQ(Read(between, 1, 1), zeros);
    EXPECT_EQ(Read(after, 0, 1), (std::vector<float>{2, 2, 0, 0}));
    EXPECT_EQ(Read(after, 1, 1), once);
  }
  // A piece may start anywhere.
  float element = -1;
  EXPECT_EQ(before.Read(0, 1, 8, std::as_writable_bytes(std::span(&element, 1))), OkStatus());
  EXPECT_EQ(element, 0);
}

TEST_F(KeptTableTest, MayBeDroppedAtAnyTime) {
  auto first = std::make_unique<TableCopy>(store_, ledger_);
  const TableCopy second(store_, ledger_);
  first.reset();
  Train(0, 1);
  EXPECT_EQ(Read(second, 0, 1), std::vector<float>(4));
  first = std::make_unique<TableCopy>(store_, ledger_);
  Train(0, 2);
  first.reset();
  Train(0, 3);
  EXPECT_EQ(Read(second, 0, 1), std::vector<float>(4));
}

TEST_F(KeptTableTest, AnUpdateWithoutRowsCopiesNothing) {
  store_->CountIn(std::make_shared<StateMemory>(0), 0);
  const TableCopy copy(store_, ledger_);
  ASSERT_TRUE(store_->ApplyRows(0, Of(0, 1), {}, 0, 0, stream_));
  EXPECT_EQ(store_->kept_bytes(), 0);
  EXPECT_EQ(Read(copy, 0, 1), std::vector<float>(4));
  EXPECT_FALSE(store_->ApplyRows(0, Of(0, 1), {}, 0, 0, stream_)) << "it counts as applied";
}

TEST_F(KeptTableTest, IsLostWithoutMemoryForItsCopy) {
  // The store is counted as 100 bytes, and the copy of one shard takes 128.
  store_->CountIn(std::make_shared<StateMemory>(300), 100);
  auto first = std::make_unique<TableCopy>(store_, ledger_);
  Train(0, 1);
  Train(1, 1);
  EXPECT_EQ(Read(*first, 0, 1), std::vector<float>(4));
  std::vector<float> values(4);
  EXPECT_EQ(first->Read(1, 0, 0, std::as_writable_bytes(std::span(values))).code(),
            StatusCode::kResourceExhausted);
  // The memory of a copy that was dropped is available again.
  first.reset();
  const TableCopy second(store_, ledger_);
  Train(1, 2);
  EXPECT_EQ(Read(second, 1, 1), (std::vector<float>{1, 1, 0, 0}));
  EXPECT_EQ(Read(second, 0, 1), (std::vector<float>{1, 1, 0, 0})) << "it has not changed";
}

TEST_F(KeptTableTest, IsLostIfStagedGradientsTakeTheMemory) {
  int64_t staged = 173;  // one byte more than is left of 400 bytes, after the store and a copy
  store_->CountIn(std::make_shared<StateMemory>(400, [&staged] { return staged; }), 100);
  const TableCopy copy(store_, ledger_);
  Train(0, 1);
  std::vector<float> values(4);
  EXPECT_EQ(copy.Read(0, 0, 0, std::as_writable_bytes(std::span(values))).code(),
            StatusCode::kResourceExhausted);
  staged = 172;
  Train(1, 1);
  EXPECT_EQ(Read(copy, 1, 1), std::vector<float>(4));
}

TEST_F(KeptTableTest, HasTheBytesOfTablesOnly) {
  const TableCopy copy(store_, ledger_);
  EXPECT_EQ(copy.Check(0, 1, 8, 8), OkStatus());
  EXPECT_FALSE(copy.Check(0, 2, 0, 4).ok()) << "Adagrad has one slot";
  EXPECT_FALSE(copy.Check(0, 0, 8, 9).ok());
  EXPECT_FALSE(copy.Check(0, 0, ~uint64_t{0}, 2).ok());
  EXPECT_FALSE(copy.Check(2, 0, 0, 4).ok()) << "of no table";
  EXPECT_FALSE(copy.Check(7, 0, 0, 4).ok());
}

}  // namespace
}  // namespace tfjob::ps
