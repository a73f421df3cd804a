#include <charconv>
#include <cstring>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "runtime/graph/device.h"
#include "runtime/graph/graph_def/graph_def.h"
#include "runtime/graph/graph_def/graph_def.pb.h"
#include "runtime/graph/op.h"
#include "runtime/graph/subgraph.h"
#include "runtime/tensor/tensor.h"

namespace tfjob::graph {
namespace {

constexpr char kOutputShapes[] = "_output_shapes";
// Limits how deeply graphs may be nested: the body of a loop is a graph, and may contain another
// loop.
constexpr int kMostLevels = 8;

StatusOr<DType> ReadDType(DataType type) {
  const std::optional<DType> dtype = DTypeFromTensorFlow(type);
  if (!dtype) return InvalidArgument("there is no element type ", static_cast<int>(type));
  return *dtype;
}

// Converts a shape. Does not reject negative dimensions, because the shape attribute of Reshape may
// contain -1.
Shape ReadShape(const TensorShapeProto& proto) {
  std::vector<int64_t> dims;
  for (const auto& dim : proto.dim()) dims.push_back(dim.size());
  return Shape(std::move(dims));
}

StatusOr<Tensor> ReadTensor(const TensorProto& proto) {
  ASSIGN_OR_RETURN(const DType dtype, ReadDType(proto.dtype()));
  Shape shape = ReadShape(proto.tensor_shape());
  const std::optional<int64_t> elements = shape.CheckedElements();
  const std::string& content = proto.tensor_content();
  if (!elements || static_cast<uint64_t>(*elements) > content.size() ||
      static_cast<uint64_t>(*elements) * SizeOf(dtype) != content.size()) {
    return InvalidArgument("expected the elements of ", Name(dtype), shape.ToString(), ", got ",
                           content.size(), " bytes");
  }
  Tensor tensor(dtype, std::move(shape), Buffer::Contents::kUndefined);
  std::memcpy(tensor.bytes().data(), content.data(), content.size());
  if (dtype == DType::kBool) {
    for (std::byte& value : tensor.bytes()) value = value == std::byte{0} ? value : std::byte{1};
  }
  return tensor;
}

// Splits "NODE:INDEX" into name and index. "NODE" alone means output 0.
StatusOr<std::pair<std::string_view, int>> SplitName(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::pair(text, 0);
  int index = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + colon + 1, end, index);
  if (error != std::errc() || stop != end || index < 1) {
    return InvalidArgument("expected NODE or NODE:INDEX, got \"", text, "\"");
  }
  return std::pair(text.substr(0, colon), index);
}

class GraphReader {
 public:
  GraphReader(const GraphDef& proto, int level) : proto_(proto), level_(level) {}

  StatusOr<Graph> Read() {
    if (level_ >= kMostLevels)
      return InvalidArgument("expected at most ", kMostLevels, " levels of loops");
    for (const NodeDef& node : proto_.node()) {
      RETURN_IF_ERROR(Annotate(ReadNode(node), StrCat("node ", node.name())));
    }
    for (const GraphDef::Fetch& fetch : proto_.fetch()) {
      RETURN_IF_ERROR(Annotate(ReadFetch(fetch), StrCat("fetch ", fetch.name())));
    }
    return std::move(graph_);
  }

 private:
  Status ReadNode(const NodeDef& proto) {
    RETURN_IF_ERROR(CheckVersion(proto.op()));
    Node node;
    node.op = proto.op();
    node.name = proto.name();
    if (node.name.empty() || node.name.find(':') != std::string::npos)
      return InvalidArgument("expected a name without colons");
    std::vector<TensorType> types;
    for (const std::string& input : proto.input()) {
      ASSIGN_OR_RETURN(node.inputs.emplace_back(), Find(input));
      types.push_back(graph_.type(node.inputs.back()));
    }
    ASSIGN_OR_RETURN(const DeviceSpec device, DeviceSpec::Parse(proto.device()));
    node.device = device.ToString();
    ASSIGN_OR_RETURN(node.attributes, ReadAttributes(proto));
    ASSIGN_OR_RETURN(node.outputs, InferTypes(node.op, types, node.attributes));
    RETURN_IF_ERROR(CheckShapes(proto, node));
    if (!ids_.emplace(node.name, static_cast<int>(graph_.nodes().size())).second)
      return InvalidArgument("there is an earlier node of this name");
    graph_.Append(std::move(node));
    return OkStatus();
  }

  Status CheckVersion(const std::string& name) const {
    const Op* op = FindOp(name);
    if (op == nullptr) return Unimplemented("there is no op ", name);
    const auto found = proto_.op_version().find(name);
    if (found == proto_.op_version().end())
      return InvalidArgument("op_version does not name the op ", name);
    if (found->second == op->version) return OkStatus();
    return Unimplemented("the graph uses version ", found->second, " of the op ", name,
                         ", and this program has version ", op->version,
                         "; write the graph again with this program");
  }

  StatusOr<Output> Find(std::string_view text) const {
    ASSIGN_OR_RETURN(const auto split, SplitName(text));
    const auto found = ids_.find(split.first);
    if (found == ids_.end()) return InvalidArgument("there is no earlier node ", split.first);
    const size_t outputs = graph_.node(found->second).outputs.size();
    if (static_cast<size_t>(split.second) < outputs) return Output{found->second, split.second};
    return InvalidArgument("node ", split.first, " has no output ", split.second);
  }

  StatusOr<Attributes> ReadAttributes(const NodeDef& proto) const {
    Attributes attributes;
    for (const auto& [name, value] : proto.attr()) {
      if (name == kOutputShapes) continue;
      StatusOr<AttributeValue> read = ReadAttribute(value);
      if (!read.ok()) return Annotate(read.status(), StrCat("attribute ", name));
      attributes.Set(name, *std::move(read));
    }
    return attributes;
  }

  StatusOr<AttributeValue> ReadAttribute(const AttrValue& proto) const {
    switch (proto.value_case()) {
      case AttrValue::kI:
        return AttributeValue(int64_t{proto.i()});
      case AttrValue::kF:
        return AttributeValue(proto.f64());
      case AttrValue::kB:
        return AttributeValue(proto.b());
      case AttrValue::kS:
        return AttributeValue(proto.s());
      case AttrValue::kList:
        return AttributeValue(
            std::vector<int64_t>(proto.list().i().begin(), proto.list().i().end()));
      case AttrValue::kType: {
        ASSIGN_OR_RETURN(const DType dtype, ReadDType(proto.type()));
        return AttributeValue(dtype);
      }
      case AttrValue::kShape:
        return AttributeValue(ReadShape(proto.shape()));
      case AttrValue::kTensor: {
        ASSIGN_OR_RETURN(Tensor tensor, ReadTensor(proto.tensor()));
        return AttributeValue(std::move(tensor));
      }
      case AttrValue::kGraph: {
        ASSIGN_OR_RETURN(Graph graph, GraphReader(proto.graph(), level_ + 1).Read());
        return AttributeValue(Subgraph::Of(std::move(graph)));
      }
      case AttrValue::VALUE_NOT_SET:
        break;
    }
    return InvalidArgument(
        "expected a number, text, type, shape, tensor, list or graph, but there is none");
  }

  static Status CheckShapes(const NodeDef& proto, const Node& node) {
    const auto found = proto.attr().find(kOutputShapes);
    if (found == proto.attr().end())
      return InvalidArgument("the shapes of its outputs are missing");
    const auto& shapes = found->second.list().shape();
    std::string derived, given;
    for (const TensorType& type : node.outputs) derived += type.shape.ToString();
    for (const TensorShapeProto& shape : shapes) given += ReadShape(shape).ToString();
    if (derived == given) return OkStatus();
    return InvalidArgument("its outputs have the shapes ", derived, ", but the graph says ", given);
  }

  Status ReadFetch(const GraphDef::Fetch& fetch) {
    ASSIGN_OR_RETURN(const Output output, Find(fetch.output()));
    if (!fetches_.insert(fetch.name()).second)
      return InvalidArgument("there is an earlier fetch of this name");
    graph_.AddFetch({fetch.name(), output});
    return OkStatus();
  }

  const GraphDef& proto_;
  const int level_;
  Graph graph_;
  std::map<std::string, int, std::less<>> ids_;  // positions of the nodes, by name
  std::set<std::string> fetches_;
};

}  // namespace

StatusOr<Graph> ReadGraphDef(std::string_view bytes) {
  GraphDef proto;
  if (bytes.size() > std::numeric_limits<int>::max() ||
      !proto.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return InvalidArgument("these bytes are no GraphDef");
  }
  return GraphReader(proto, 0).Read();
}

}  // namespace tfjob::graph
