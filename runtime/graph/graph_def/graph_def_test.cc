#include "runtime/graph/graph_def/graph_def.h"

#include <gtest/gtest.h>

#include <functional>

#include "runtime/graph/gradients.h"
#include "runtime/graph/graph_def/graph_def.pb.h"
#include "runtime/graph/ops.h"
#include "runtime/graph/passes.h"
#include "runtime/graph/scan.h"

namespace tfjob::graph {
namespace {

constexpr DType kF32 = DType::kFloat32;

Graph Finished(Builder b) {
  StatusOr<Graph> graph = std::move(b).Finish();
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *std::move(graph);
}

// Returns a graph that computes x · w plus a constant bias.
Graph SmallGraph() {
  Builder b;
  const Output x = Placeholder(b, "x", kF32, {2, 3});
  const Output w = ReadVariable(b, "w", kF32, {3, 1});
  Output y;
  {
    const DeviceScope device(b, "/job:worker/task:1");
    const Output product = MatMul(b, x, w);
    y = Add(b, product, Const(b, Tensor::Of<float>(Shape({1}), {0.5F}), "bias"));
  }
  b.AddFetch("y", y);
  return Finished(std::move(b));
}

// Returns a graph with a loop and its gradients, random numbers, a write, and attributes of every
// kind.
Graph LargeGraph() {
  Builder b;
  const Output xs = Placeholder(b, "xs", kF32, {4, 2});
  const Output step = Placeholder(b, "step", DType::kInt64, {});
  const Output seed = Placeholder(b, "seed", DType::kInt64, {});
  const Output noise = b.Add("RandomUniform", {step, seed},
                             {{"dtype", kF32},
                              {"shape", Shape({4, 2})},
                              {"op_id", b.NextOpId()},
                              {"minval", -0.1},
                              {"maxval", 0.1}});
  ScanBuilder scan(b, 4);
  const Output x = scan.Sequence(Add(b, xs, noise));
  const Output sum = scan.State(Fill(b, kF32, {2}, 0.0));
  const Output next = Tanh(scan.body(), Add(scan.body(), sum, x));
  scan.SetNext(0, next);
  scan.Stack(next);
  const ScanBuilder::Results results = scan.Finish();
  const Output table = ReadVariable(b, "table", DType::kFloat64, {3});
  Assign(b, "table", Cast(b, Sum(b, results.outputs[0], {0}), DType::kFloat64));
  const Output half = Cast(b, results.states[0], DType::kFloat16);
  const Output product = Mul(b, half, Scalar(b, DType::kFloat16, 0.1));
  b.AddFetch("brain", Add(b, Cast(b, product, DType::kBFloat16), Scalar(b, DType::kBFloat16, 3)));
  const Output loss = Mean(b, Square(b, results.states[0]), {});
  b.AddFetch("loss", loss);
  b.AddFetch("table", table);
  b.AddFetch("gradient", Gradients(b, loss, std::vector<Output>{xs})[0]);
  return Finished(std::move(b));
}

void ExpectReadsBackEqual(const Graph& graph) {
  const StatusOr<std::string> bytes = WriteGraphDef(graph);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  const StatusOr<Graph> read = ReadGraphDef(*bytes);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->ToString(), graph.ToString());
  EXPECT_TRUE(*read == graph);
  EXPECT_EQ(*WriteGraphDef(*read), *bytes);
}

// Acts as an Evaluator that returns zeros for every node.
StatusOr<std::vector<Tensor>> Zeros(const Node& node, const std::vector<Tensor>&) {
  std::vector<Tensor> zeros;
  for (const TensorType& type : node.outputs) zeros.emplace_back(type.dtype, type.shape);
  return zeros;
}

TEST(GraphDef, ReadsBackEqual) {
  ExpectReadsBackEqual(Graph());
  ExpectReadsBackEqual(SmallGraph());
  ExpectReadsBackEqual(LargeGraph());
}

TEST(GraphDef, ReadsOptimizedGraphsBackEqual) {
  for (const Graph& graph : {SmallGraph(), LargeGraph()}) {
    const StatusOr<Graph> optimized = Optimize(graph, Zeros);
    ASSERT_TRUE(optimized.ok()) << optimized.status();
    ExpectReadsBackEqual(*optimized);
  }
}

TEST(GraphDef, PrintsTensorFlowsText) {
  Builder b;
  b.AddFetch("y", Neg(b, Placeholder(b, "x", kF32, {})));
  EXPECT_EQ(PrintGraphDef(Finished(std::move(b))), R"(node {
  name: "x"
  op: "Placeholder"
  attr {
    key: "_output_shapes"
    value {
      list {
        shape {
        }
      }
    }
  }
  attr {
    key: "dtype"
    value {
      type: DT_FLOAT
    }
  }
  attr {
    key: "shape"
    value {
      shape {
      }
    }
  }
}
node {
  name: "Neg"
  op: "Neg"
  input: "x"
  attr {
    key: "_output_shapes"
    value {
      list {
        shape {
        }
      }
    }
  }
}
fetch {
  name: "y"
  output: "Neg"
}
op_version {
  key: "Neg"
  value: 1
}
op_version {
  key: "Placeholder"
  value: 1
}
)");
}

TEST(GraphDef, LeavesOutLargeConstantsIfAsked) {
  Builder b;
  b.AddFetch("small", Const(b, Tensor(kF32, Shape({256}))));
  b.AddFetch("large", Const(b, Tensor(kF32, Shape({257}))));
  const Graph graph = Finished(std::move(b));
  GraphDef whole, small;
  ASSERT_TRUE(whole.ParseFromString(*WriteGraphDef(graph)));
  ASSERT_TRUE(small.ParseFromString(*WriteGraphDef(graph, Constants::kSmall)));
  EXPECT_EQ(whole.node(1).attr().at("value").tensor().tensor_content().size(), 1028u);
  EXPECT_EQ(small.node(0).attr().at("value").tensor().tensor_content().size(), 1024u);
  EXPECT_EQ(small.node(1).attr().at("value").tensor().tensor_content().size(), 0u);
}

// Returns the error from reading SmallGraph after `change` has modified its GraphDef.
std::string ErrorAfter(const std::function<void(GraphDef&)>& change) {
  GraphDef proto;
  EXPECT_TRUE(proto.ParseFromString(*WriteGraphDef(SmallGraph())));
  change(proto);
  const StatusOr<Graph> read = ReadGraphDef(proto.SerializeAsString());
  EXPECT_FALSE(read.ok());
  return std::string(Message(read.status()));
}

TEST(GraphDef, NamesWhatIsWrong) {
  EXPECT_EQ(Message(ReadGraphDef("\x0f").status()), "these bytes are no GraphDef");
  EXPECT_EQ(ErrorAfter([](GraphDef& g) { g.mutable_node(2)->set_input(0, "z"); }),
            "node MatMul: there is no earlier node z");
  EXPECT_EQ(ErrorAfter([](GraphDef& g) { g.mutable_node(2)->set_input(0, "x:1"); }),
            "node MatMul: node x has no output 1");
  EXPECT_EQ(ErrorAfter([](GraphDef& g) { g.mutable_node(2)->set_input(0, "x:-1"); }),
            "node MatMul: expected NODE or NODE:INDEX, got \"x:-1\"");
  EXPECT_EQ(ErrorAfter([](GraphDef& g) { g.mutable_node(2)->set_input(0, "MatMul"); }),
            "node MatMul: there is no earlier node MatMul");
  EXPECT_EQ(ErrorAfter([](GraphDef& g) { g.mutable_node(1)->set_name("x"); }),
            "node x: there is an earlier node of this name");
  EXPECT_EQ(ErrorAfter([](GraphDef& g) { g.mutable_node(2)->set_op("MatMull"); }),
            "node MatMul: there is no op MatMull");
  EXPECT_EQ(ErrorAfter([](GraphDef& g) { (*g.mutable_op_version())["MatMul"] = 2; }),
            "node MatMul: the graph uses version 2 of the op MatMul, and this program has version "
            "1; write the graph again with this program");
  EXPECT_EQ(ErrorAfter([](GraphDef& g) { g.mutable_op_version()->erase("Add"); }),
            "node Add: op_version does not name the op Add");
  EXPECT_EQ(ErrorAfter([](GraphDef& g) { g.mutable_fetch(0)->set_output("q"); }),
            "fetch y: there is no earlier node q");
  EXPECT_EQ(ErrorAfter([](GraphDef& g) { *g.add_fetch() = g.fetch(0); }),
            "fetch y: there is an earlier fetch of this name");
}

TEST(GraphDef, ChecksAttributesTypesAndShapes) {
  const auto attribute = [](GraphDef& g, int node, const char* name) -> AttrValue& {
    return (*g.mutable_node(node)->mutable_attr())[name];
  };
  EXPECT_EQ(ErrorAfter([&](GraphDef& g) { attribute(g, 0, "dtype").set_type(DataType(99)); }),
            "node x: attribute dtype: there is no element type 99");
  EXPECT_EQ(ErrorAfter([&](GraphDef& g) { attribute(g, 0, "dtype").Clear(); }),
            "node x: attribute dtype: expected a number, text, type, shape, tensor, list or graph, "
            "but there is none");
  EXPECT_EQ(ErrorAfter([&](GraphDef& g) {
              attribute(g, 0, "shape").mutable_shape()->mutable_dim(1)->set_size(4);
            }),
            "node x: its outputs have the shapes [2,4], but the graph says [2,3]");
  EXPECT_EQ(
      ErrorAfter([&](GraphDef& g) { g.mutable_node(0)->mutable_attr()->erase("_output_shapes"); }),
      "node x: the shapes of its outputs are missing");
  EXPECT_EQ(ErrorAfter([&](GraphDef& g) {
              attribute(g, 3, "value").mutable_tensor()->set_tensor_content("abc");
            }),
            "node bias: attribute value: expected the elements of float32[1], got 3 bytes");
  EXPECT_EQ(ErrorAfter([&](GraphDef& g) {
              auto& dims = *attribute(g, 3, "value").mutable_tensor()->mutable_tensor_shape();
              for (int i = 0; i < 3; ++i) dims.add_dim()->set_size(int64_t{1} << 40);
            }),
            "node bias: attribute value: expected the elements of "
            "float32[1,1099511627776,1099511627776,1099511627776], got 4 bytes");
}

TEST(GraphDef, RefusesLoopsThatAreTooDeep) {
  GraphDef proto;
  ASSERT_TRUE(proto.ParseFromString(*WriteGraphDef(LargeGraph())));
  for (int level = 0; level < 9; ++level) {
    GraphDef outer;
    (*outer.mutable_op_version())["Scan"] = 1;
    NodeDef& node = *outer.add_node();
    node.set_name("loop");
    node.set_op("Scan");
    *(*node.mutable_attr())["body"].mutable_graph() = std::move(proto);
    proto = std::move(outer);
  }
  const StatusOr<Graph> read = ReadGraphDef(proto.SerializeAsString());
  EXPECT_NE(std::string(Message(read.status())).find("expected at most 8 levels of loops"),
            std::string::npos)
      << read.status();
}

}  // namespace
}  // namespace tfjob::graph
