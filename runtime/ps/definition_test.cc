#include "runtime/ps/definition.h"

#include <gtest/gtest.h>

#include <limits>
#include <map>

#include "runtime/ps/placement.h"

namespace tfjob::ps {
namespace {

Definition TwoLayers() {
  return {.state = {.variables = {{.name = "dense/kernel", .shape = {784, 512}},
                                  {.name = "dense/bias", .shape = {512}},
                                  {.name = "dense_1/kernel", .shape = {512, 10}},
                                  {.name = "dense_1/bias", .shape = {10}}},
                    .optimizer = optimizer::Optimizer::Default(optimizer::Kind::kAdam)}};
}

TEST(Definition, SurvivesTheWire) {
  Definition definition = TwoLayers();
  definition.mode = Mode::kSynchronous;
  definition.replicas_to_aggregate = 3;
  definition.state.optimizer.learning_rate = 0.1;
  definition.state.variables[1].update = state::Update::kAssign;
  const std::vector<std::string> servers = {"a:1", "b:2"};
  StatusOr<Assignment> read = ParseAssignment(Serialize(Assignment{definition, servers}));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->definition, definition);
  EXPECT_EQ(read->servers, servers);
  EXPECT_EQ(Fingerprint(read->definition), Fingerprint(definition));
  definition.replicas_to_aggregate += 1;
  EXPECT_EQ(Fingerprint(read->definition), Fingerprint(definition));
  definition.state.optimizer.beta_1 = 0.8;
  EXPECT_NE(Fingerprint(read->definition), Fingerprint(definition));
}

// Tasks of different builds exchange these bytes and compare this digest, so neither the bytes nor
// the digest may change.
TEST(Definition, KeepsItsBytesAndItsFingerprint) {
  Definition definition = TwoLayers();
  definition.state.variables[1].update = state::Update::kAssign;
  definition.mode = Mode::kSynchronous;
  EXPECT_EQ(
      Serialize(Assignment{definition, {"a:1"}}),
      R"({"definition":{"max_shard_bytes":4194304,"mode":1,"optimizer":{"beta_1":0.9,"beta_2":0.999,)"
      R"("centered":false,"epsilon":1e-07,"initial_accumulator_value":0.1,"kind":"Adam",)"
      R"("learning_rate":0.001,"learning_rate_schedule":{},"momentum":0.0,"nesterov":false,)"
      R"("rho":0.9},"placement":0,"replicas_to_aggregate":1,"variables":[)"
      R"({"dtype":"float32","name":"dense/kernel","shape":[784,512],"update":0},)"
      R"({"dtype":"float32","name":"dense/bias","shape":[512],"update":1},)"
      R"({"dtype":"float32","name":"dense_1/kernel","shape":[512,10],"update":0},)"
      R"({"dtype":"float32","name":"dense_1/bias","shape":[10],"update":0}]},"servers":["a:1"]})");
  EXPECT_EQ(Fingerprint(definition), 1368180430828001073u);
}

TEST(Definition, CarriesTheTasksOutsideItsFingerprint) {
  Definition definition;
  definition.state.variables = {{.name = "w", .shape = {4}}};
  const uint64_t without = Fingerprint(definition);
  definition.tasks = {{"chief", 0}, {"worker", 7}};
  definition.start_timeout = 5s;
  EXPECT_EQ(Fingerprint(definition), without);
  EXPECT_EQ(ParseAssignment(Serialize({definition, {"a:1"}}))->definition, definition);
  for (const state::TaskId& wrong :
       std::vector<state::TaskId>{{"", 0}, {"a b", 0}, {"worker", -1}}) {
    definition.tasks[1] = wrong;
    EXPECT_TRUE(absl::IsInvalidArgument(Validate(definition))) << wrong.type;
  }
  definition.tasks.assign(kMaxTrainingTasks + 1, {"worker", 0});
  EXPECT_TRUE(absl::IsInvalidArgument(Validate(definition)));
  definition.tasks.clear();
  definition.start_timeout = -1s;
  EXPECT_TRUE(absl::IsInvalidArgument(Validate(definition)));
}

TEST(Definition, ServersClipOnlyTheMeanOfSynchronousSteps) {
  using optimizer::ClipKind;
  Definition definition = TwoLayers();
  const uint64_t without = Fingerprint(definition);
  EXPECT_EQ(NormsOf(definition), 0u);
  definition.clipping = {ClipKind::kNorm, 1.5};
  EXPECT_EQ(Message(Validate(definition)),
            "clipping: expected none in asynchronous mode, where the tasks clip their gradients");
  definition.mode = Mode::kSynchronous;
  EXPECT_EQ(ParseAssignment(Serialize({definition, {"a:1"}}))->definition, definition);
  EXPECT_NE(Fingerprint(definition), without);
  EXPECT_EQ(NormsOf(definition), 4u) << "one per variable";
  definition.clipping.kind = ClipKind::kValue;
  EXPECT_EQ(NormsOf(definition), 0u);
  definition.clipping.kind = ClipKind::kGlobalNorm;
  EXPECT_EQ(NormsOf(definition), 1u);
  for (const double limit : {0.0, -1.0, std::numeric_limits<double>::infinity()}) {
    definition.clipping.limit = limit;
    EXPECT_TRUE(absl::IsInvalidArgument(Validate(definition))) << limit;
  }
}

TEST(Definition, RefusesWhatCannotBeServed) {
  auto error = [](auto change) {
    Definition definition = TwoLayers();
    change(definition);
    return std::string(Message(Validate(definition)));
  };
  EXPECT_EQ(error([](Definition& d) { d.state.variables[1].name = "dense/kernel"; }),
            "two variables are called dense/kernel");
  EXPECT_EQ(error([](Definition& d) { d.state.variables[0].dtype = DType::kInt32; }),
            "variable dense/kernel: an optimizer updates only float32 and float64, not int32");
  EXPECT_EQ(error([](Definition& d) { d.replicas_to_aggregate = 0; }),
            "replicas_to_aggregate: expected 1 or more, got 0");
  EXPECT_EQ(error([](Definition& d) { d.max_shard_bytes = 0; }),
            "max_shard_bytes: expected 1 or more, got 0");
  EXPECT_EQ(error([](Definition& d) { d.state.variables[0].shape = {int64_t{1} << 61, 8}; }),
            "variable dense/kernel: the shape [2305843009213693952,8] takes more than "
            "1099511627776 bytes");
  EXPECT_EQ(error([](Definition& d) { d.state.variables[0].shape = {(int64_t{1} << 38) + 1}; }),
            "variable dense/kernel: the shape [274877906945] takes more than 1099511627776 bytes");
  EXPECT_EQ(error([](Definition& d) {
              d.state.variables[0].shape = {1 << 21};
              d.max_shard_bytes = 4;
            }),
            "strategy.shard_bytes: 4 would cut the variables into more than 1048576 shards: "
            "expected 0 or at least 12");
  Definition most = TwoLayers();
  most.state.variables = {{.name = "w", .shape = {1 << 20}}};
  most.max_shard_bytes = 4;
  EXPECT_EQ(Validate(most), OkStatus());
  EXPECT_EQ(Place(most, 3).size(), size_t{1} << 20);
  const std::vector<std::string> servers(kMaxServers + 1, "a:1");
  EXPECT_EQ(Message(ParseAssignment(Serialize({TwoLayers(), servers})).status()),
            "servers: expected at most 16384, got 16385");
  EXPECT_FALSE(ParseAssignment("{").ok());
  EXPECT_FALSE(ParseAssignment("{\"definition\":{\"variables\":[{}]},\"servers\":[]}").ok());
}

TEST(Definition, ListsTheVariablesWhoseGradientsArriveAsRows) {
  Definition definition = TwoLayers();
  const uint64_t without = Fingerprint(definition);
  definition.row_gradients = {0, 2};
  definition.state.optimizer.lazy = true;
  const auto read = ParseAssignment(Serialize(Assignment{definition, {"a:1"}}));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->definition, definition);
  EXPECT_NE(Fingerprint(definition), without);
  const auto error = [](std::vector<int> variables, int64_t shard_bytes = 4 << 20) {
    Definition refused = TwoLayers();
    refused.state.variables[2].update = state::Update::kAssign;
    refused.row_gradients = std::move(variables);
    refused.max_shard_bytes = shard_bytes;
    return std::string(Message(Validate(refused)));
  };
  EXPECT_EQ(error({0}), "");
  EXPECT_EQ(error({1}),
            "row_gradients: variable dense/bias is no matrix that an optimizer changes");
  EXPECT_EQ(error({2}),
            "row_gradients: variable dense_1/kernel is no matrix that an optimizer changes");
  EXPECT_EQ(error({0, 0}), "row_gradients: expected ascending indices below 4, got 0");
  EXPECT_EQ(error({4}), "row_gradients: expected ascending indices below 4, got 4");
  EXPECT_EQ(error({-1}), "row_gradients: expected ascending indices below 4, got -1");
  EXPECT_EQ(error({0}, 2047),
            "strategy.shard_bytes: 2047 is less than a row of dense/kernel, which cannot be split: "
            "expected 0 or at least 2048");
  EXPECT_EQ(error({0}, 2048), "");
}

TEST(Definition, ListsTheTablesOfWhichTasksReadOnlyRows) {
  Definition definition = TwoLayers();
  definition.row_gradients = {0};
  const uint64_t without = Fingerprint(definition);
  definition.tables = {0};
  const auto read = ParseAssignment(Serialize(Assignment{definition, {"a:1"}}));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->definition, definition);
  EXPECT_NE(Fingerprint(definition), without);
  const auto error = [](std::vector<int> tables, int64_t shard_bytes = 4 << 20) {
    Definition refused = TwoLayers();
    refused.state.variables[2].update = state::Update::kAssign;
    refused.row_gradients = {0};
    refused.tables = std::move(tables);
    refused.max_shard_bytes = shard_bytes;
    return std::string(Message(Validate(refused)));
  };
  EXPECT_EQ(error({0, 2}), "") << "a frozen table has no gradient";
  EXPECT_EQ(error({1}), "tables: variable dense/bias has no rows of up to 1048576 bytes");
  EXPECT_EQ(error({2, 0}), "tables: expected ascending indices below 4, got 0");
  EXPECT_EQ(error({4}), "tables: expected ascending indices below 4, got 4");
  EXPECT_EQ(error({0}, 2047),
            "strategy.shard_bytes: 2047 is less than a row of dense/kernel, which cannot be split: "
            "expected 0 or at least 2048");
  definition.row_gradients.clear();
  EXPECT_EQ(Message(Validate(definition)),
            "tables: the gradient of variable dense/kernel does not arrive as rows");
}

// A server gets only the ledger lines that it needs, because the ledgers of all servers together
// may be too large for a frame.
TEST(Placement, AServersLedgerHasItsOwnShardsAndWhatIsNobodys) {
  const std::vector<Shard> shards = Place(TwoLayers(), 2);
  const std::string ledger =
      "-2 uid 1 0 0\n0 worker 0 1 7\n1 worker 0 1 7\n3 chief 0 1 2\n9 worker 0 1 1\n-1 worker 0 1 "
      "7\n";
  EXPECT_EQ(LedgerOf(ledger, shards, 0), "-2 uid 1 0 0\n0 worker 0 1 7\n-1 worker 0 1 7\n");
  EXPECT_EQ(LedgerOf(ledger, shards, 1),
            "-2 uid 1 0 0\n1 worker 0 1 7\n3 chief 0 1 2\n-1 worker 0 1 7\n");
  EXPECT_EQ(LedgerOf("", shards, 0), "");
  EXPECT_EQ(LedgerOf("rubbish", shards, 0), "rubbish\n");
}

TEST(Placement, GoesRoundByVariable) {
  std::vector<Shard> shards = Place(TwoLayers(), 2);
  ASSERT_EQ(shards.size(), 4u);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(shards[static_cast<size_t>(i)].server, i % 2);
}

TEST(Placement, CutsLargeVariablesAtRowBordersAndCoversEveryByteOnce) {
  Definition definition = TwoLayers();
  definition.max_shard_bytes = 300'000;
  for (Placement placement : {Placement::kRoundRobin, Placement::kBalanced}) {
    definition.placement = placement;
    std::map<int, int64_t> next;
    for (const Shard& shard : Place(definition, 3)) {
      EXPECT_LE(shard.size, 300'000);
      EXPECT_EQ(shard.offset, next[shard.variable]);
      next[shard.variable] += shard.size;
      if (shard.variable == 0) {
        EXPECT_EQ(shard.size % (512 * 4), 0);
      }
    }
    EXPECT_EQ(next[0], 784 * 512 * 4);
    EXPECT_EQ(next[3], 40);
  }
}

TEST(Placement, BalancesBytes) {
  Definition definition = TwoLayers();
  definition.placement = Placement::kBalanced;
  definition.max_shard_bytes = 100'000;
  std::map<int, int64_t> load;
  for (const Shard& shard : Place(definition, 3)) load[shard.server] += shard.size;
  for (const auto& [server, bytes] : load) EXPECT_NEAR(bytes, 1'628'200 / 3, 100'000) << server;
}

TEST(Placement, KeepsWhatAConstraintNeedsTogether) {
  const auto norm = [](int64_t axis) {
    return optimizer::Constraint{.kind = optimizer::Constraint::Kind::kUnitNorm, .axes = {axis}};
  };
  Definition definition;
  definition.state.variables = {{.name = "columns", .shape = {6, 100}, .constraint = norm(0)},
                                {.name = "rows", .shape = {6, 100}, .constraint = norm(-1)},
                                {.name = "elements",
                                 .shape = {6, 100},
                                 .constraint = {.kind = optimizer::Constraint::Kind::kNonNeg}}};
  definition.max_shard_bytes = 300;  // less than a row
  const std::vector<state::Variable>& variables = definition.state.variables;
  const std::vector<Shard> shards = Place(definition, 2);
  ASSERT_EQ(shards.size(), 1u + 6u + 8u);
  EXPECT_EQ(ShapeOf(variables[0], shards[0]), Shape({6, 100}));
  EXPECT_EQ(shards[1].size, 400);
  EXPECT_EQ(ShapeOf(variables[1], shards[1]), Shape({1, 100}));
  EXPECT_EQ(ShapeOf(variables[2], shards[7]), Shape({75}));
  const StatusOr<Assignment> again = ParseAssignment(Serialize({definition, {}}));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->definition, definition);
  definition.state.variables[0].constraint.axes = {2};
  EXPECT_EQ(Message(Validate(definition)),
            "variable columns: constraint UnitNorm: expected different axes of [6,100], got 2");
}

TEST(Placement, CutsARowThatIsTooWide) {
  Definition definition;
  definition.state.variables = {{.name = "wide", .shape = {3, 1000}},
                                {.name = "none", .shape = {0, 4}},
                                {.name = "scalar", .shape = {}}};
  definition.max_shard_bytes = 3000;
  std::vector<Shard> shards = Place(definition, 2);
  ASSERT_EQ(shards.size(), 6u);
  EXPECT_EQ(shards[3], (Shard{.variable = 0, .server = 1, .offset = 9000, .size = 3000}));
  EXPECT_EQ(shards[4].size, 0);
  EXPECT_EQ(shards[5].size, 4);
}

}  // namespace
}  // namespace tfjob::ps
