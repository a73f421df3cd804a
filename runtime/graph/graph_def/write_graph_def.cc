#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/text_format.h>

#include <limits>
#include <variant>

#include "runtime/graph/graph_def/graph_def.h"
#include "runtime/graph/graph_def/graph_def.pb.h"
#include "runtime/graph/op.h"
#include "runtime/graph/subgraph.h"

namespace tfjob::graph {
namespace {

constexpr size_t kSmallConstant = 1024;  // bytes

void WriteShape(const Shape& shape, TensorShapeProto& proto) {
  for (const int64_t dim : shape.dims()) proto.add_dim()->set_size(dim);
}

void WriteTensor(const Tensor& tensor, Constants constants, TensorProto& proto) {
  proto.set_dtype(static_cast<DataType>(tensor.dtype()));
  WriteShape(tensor.shape(), *proto.mutable_tensor_shape());
  if (constants == Constants::kSmall && tensor.num_bytes() > kSmallConstant) return;
  proto.set_tensor_content(tensor.bytes().data(), tensor.num_bytes());
}

void WriteGraph(const Graph& graph, Constants constants, GraphDef& proto);

struct AttributeWriter {
  void operator()(int64_t value) const { proto.set_i(value); }
  void operator()(double value) const {
    proto.set_f(static_cast<float>(value));
    proto.set_f64(value);
  }
  void operator()(bool value) const { proto.set_b(value); }
  void operator()(const std::string& value) const { proto.set_s(value); }
  void operator()(const std::vector<int64_t>& values) const {
    proto.mutable_list()->mutable_i()->Add(values.begin(), values.end());
  }
  void operator()(DType value) const { proto.set_type(static_cast<DataType>(value)); }
  void operator()(const Shape& value) const { WriteShape(value, *proto.mutable_shape()); }
  void operator()(const Tensor& value) const {
    WriteTensor(value, constants, *proto.mutable_tensor());
  }
  void operator()(const GraphPointer& value) const {
    // The cast cannot fail, because Subgraph is the only class derived from GraphAttribute.
    WriteGraph(dynamic_cast<const Subgraph&>(*value).graph(), constants, *proto.mutable_graph());
  }

  AttrValue& proto;
  const Constants constants;
};

void WriteNode(const Graph& graph, const Node& node, Constants constants, NodeDef& proto) {
  proto.set_name(node.name);
  proto.set_op(node.op);
  for (const Output input : node.inputs) proto.add_input(graph.NameOf(input));
  proto.set_device(node.device);
  for (const auto& [name, value] : node.attributes.values()) {
    std::visit(AttributeWriter{(*proto.mutable_attr())[name], constants}, value);
  }
  auto& shapes = *(*proto.mutable_attr())["_output_shapes"].mutable_list();
  for (const TensorType& type : node.outputs) WriteShape(type.shape, *shapes.add_shape());
}

void WriteGraph(const Graph& graph, Constants constants, GraphDef& proto) {
  for (const Node& node : graph.nodes()) {
    WriteNode(graph, node, constants, *proto.add_node());
    (*proto.mutable_op_version())[node.op] = FindOp(node.op)->version;
  }
  for (const Fetch& fetch : graph.fetches()) {
    GraphDef::Fetch& written = *proto.add_fetch();
    written.set_name(fetch.name);
    written.set_output(graph.NameOf(fetch.output));
  }
}

}  // namespace

StatusOr<std::string> WriteGraphDef(const Graph& graph, Constants constants) {
  GraphDef proto;
  WriteGraph(graph, constants, proto);
  const size_t size = proto.ByteSizeLong();
  if (size > std::numeric_limits<int>::max()) {
    return ResourceExhausted("the graph would take ", size,
                             " bytes as a GraphDef, which may have at most 2147483647");
  }
  std::string bytes;
  {
    google::protobuf::io::StringOutputStream stream(&bytes);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);  // sorts map entries
    proto.SerializeToCodedStream(&coded);
  }
  return bytes;
}

std::string PrintGraphDef(const Graph& graph) {
  GraphDef proto;
  WriteGraph(graph, Constants::kSmall, proto);
  std::string text;
  google::protobuf::TextFormat::PrintToString(proto, &text);
  return text;
}

}  // namespace tfjob::graph
