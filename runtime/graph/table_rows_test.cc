#include "runtime/graph/table_rows.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "runtime/graph/gradients.h"
#include "runtime/graph/ops.h"

namespace tfjob::graph {
namespace {

// Returns a graph whose loss uses two lookups in `table`. `use` may change the loss.
template <typename Use>
Graph TwoLookups(const Use& use) {
  Builder b;
  const Output table = ReadVariable(b, "table", DType::kFloat32, {100, 4});
  const Output bias = ReadVariable(b, "bias", DType::kFloat32, {4});
  const Output words = Placeholder(b, "words", DType::kFloat32, {2, 3});
  const Output user = Placeholder(b, "user", DType::kInt64, {2});
  const Output first = Gather(b, table, Cast(b, words, DType::kInt32));
  const Output second = Gather(b, table, user);
  Output loss = Add(b, Sum(b, first, {}), Sum(b, Mul(b, second, second), {}));
  loss = use(b, table, Add(b, loss, Sum(b, bias, {})));
  b.AddFetch("loss", loss);
  const GradientOrRows gradient = GradientsOrRows(b, loss, std::vector{table})[0];
  if (gradient.by_rows()) b.AddFetch("indices", gradient.rows.indices);
  b.AddFetch("gradient", gradient.values());
  StatusOr<Graph> graph = std::move(b).Finish();
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *std::move(graph);
}

Graph TwoLookups() {
  return TwoLookups([](Builder&, Output, Output loss) { return loss; });
}

const Node* Find(const Graph& graph, const std::string& name) {
  for (const Node& node : graph.nodes()) {
    if (node.name == name) return &node;
  }
  return nullptr;
}

// Returns the names of the feeds that a value depends on.
std::set<std::string> FeedsOf(const Graph& graph, Output value) {
  std::set<std::string> feeds;
  std::vector<int> nodes = {value.node};
  for (size_t i = 0; i < nodes.size(); ++i) {
    const Node& node = graph.node(nodes[i]);
    if (node.op == "Placeholder") feeds.insert(node.name);
    for (const Output input : node.inputs) nodes.push_back(input.node);
  }
  return feeds;
}

TEST(TableRows, FindsTablesOfWhichOnlyRowsAreRead) {
  EXPECT_EQ(SeparableTables(TwoLookups()), std::vector<std::string>{"table"});
}

TEST(TableRows, FindsNoTableThatIsUsedWhole) {
  const auto regularized = [](Builder& b, Output table, Output loss) {
    return Add(b, loss, Sum(b, Mul(b, table, table), {}));
  };
  EXPECT_TRUE(SeparableTables(TwoLookups(regularized)).empty());
  const auto fetched = [](Builder& b, Output table, Output loss) {
    b.AddFetch("table", table);
    return loss;
  };
  EXPECT_TRUE(SeparableTables(TwoLookups(fetched)).empty());
  const auto written = [](Builder& b, Output table, Output loss) {
    Assign(b, "table", table);
    return loss;
  };
  EXPECT_TRUE(SeparableTables(TwoLookups(written)).empty());
}

TEST(TableRows, FindsNoTableWhoseRowsDependOnAVariable) {
  Builder b;
  const Output table = ReadVariable(b, "table", DType::kFloat32, {100, 4});
  const Output ids = Cast(b, ReadVariable(b, "ids", DType::kFloat32, {5}), DType::kInt32);
  b.AddFetch("loss", Sum(b, Gather(b, table, ids), {}));
  EXPECT_TRUE(SeparableTables(*std::move(b).Finish()).empty());
}

TEST(TableRows, SeparatesTheIdsFromTheRest) {
  const StatusOr<SeparatedGraph> separated = SeparateTables(TwoLookups(), {"table"});
  ASSERT_TRUE(separated.ok()) << separated.status();
  ASSERT_EQ(separated->tables.size(), 1U);
  const RowTable& table = separated->tables[0];
  EXPECT_EQ(table.variable, "table");
  EXPECT_EQ(table.type, (TensorType{DType::kFloat32, {100, 4}}));
  ASSERT_EQ(table.lookups.size(), 2U);
  EXPECT_EQ(table.lookups[0].op, "Gather");
  // The ids graph contains neither variables nor the loss.
  EXPECT_EQ(separated->ids.ToString(),
            "words = Placeholder(dtype=float32, shape=[2,3]) : float32[2,3]\n"
            "user = Placeholder(dtype=int64, shape=[2]) : int64[2]\n"
            "Cast = Cast(words, dtype=int32) : int32[2,3]\n"
            "Reshape = Reshape(Cast, shape=[6]) : int32[6]\n"
            "fetch ids/table/0 = Reshape\n"
            "fetch ids/table/1 = user\n");
  // The feeds of the main graph are 6 + 2 rows and, for each lookup, the positions of its rows
  // among these 8 rows.
  const Graph& graph = separated->graph;
  EXPECT_EQ(Find(graph, "table"), nullptr);
  ASSERT_NE(Find(graph, table.rows), nullptr);
  EXPECT_EQ(Find(graph, table.rows)->outputs[0], (TensorType{DType::kFloat32, {8, 4}}));
  EXPECT_EQ(Find(graph, table.lookups[1].places)->outputs[0], (TensorType{DType::kInt64, {2}}));
  const Node& gather = *Find(graph, "Gather");
  EXPECT_EQ(graph.node(gather.inputs[0]).name, table.rows);
  EXPECT_EQ(graph.node(gather.inputs[1]).name, table.lookups[0].places);
  // The gradient still identifies rows by their indices in the whole table.
  const Node& sums = graph.node(graph.FindFetch("gradient")->output);
  EXPECT_EQ(FeedsOf(graph, sums.inputs[0]), (std::set<std::string>{"user", "words"}));
  EXPECT_TRUE(FeedsOf(graph, sums.inputs[1]).contains(table.rows));
}

TEST(TableRows, RefusesOtherVariables) {
  EXPECT_EQ(Message(SeparateTables(TwoLookups(), {"bias"}).status()),
            "variable bias is no table of which the graph reads rows");
  EXPECT_FALSE(SeparateTables(TwoLookups(), {"table", "none"}).ok());
}

}  // namespace
}  // namespace tfjob::graph
