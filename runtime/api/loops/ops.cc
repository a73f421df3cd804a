#include "runtime/api/ops.h"

#include <cmath>
#include <utility>

#include "runtime/api/access.h"

namespace tfjob::api {
namespace {

constexpr char kNumpy[] = "keras.src.ops.numpy", kNn[] = "keras.src.ops.nn",
               kMath[] = "keras.src.ops.math", kCore[] = "keras.src.ops.core";

constexpr double kMostExact = 9007199254740991;  // 2^53 - 1

// Collects the arguments of a call.
class OperationCall {
 public:
  OperationCall(const char* module, const char* name, Json config = Json::object())
      : module_(module), name_(name), config_(std::move(config)) {}

  OperationCall& With(const Operand& operand) {
    args_.push_back(Written(operand));
    return *this;
  }
  OperationCall& With(const std::vector<Symbol>& list) {
    Json written = Json::array();
    for (const Symbol& symbol : list) written.push_back(Written(symbol));
    args_.push_back(std::move(written));
    return *this;
  }
  OperationCall& WithJson(Json argument) {
    args_.push_back(std::move(argument));
    return *this;
  }

  Symbol Done() {
    LayerData layer{.form = {{"module", module_}, {"class_name", name_}}, .error = error_};
    layer.form["config"] = std::move(config_);
    layer.form["registered_name"] = name_;
    CheckConfig(layer.form["config"], layer.error);
    if (inputs_.empty())
      layer.error.Update(InvalidArgument("ops::", name_, ": expected at least one value"));
    return Access::MakeSymbol(
        {.layer = std::make_shared<const LayerData>(std::move(layer)),
         .inputs = std::move(inputs_),
         .arguments = {{"args", std::move(args_)}, {"kwargs", Json::object()}}});
  }

 private:
  Json Written(const Operand& operand) {
    if (operand.symbol()) {
      inputs_.push_back(*operand.symbol());
      return {{kInputOfCall, inputs_.size() - 1}};
    }
    if (!std::isfinite(operand.number())) {
      error_.Update(
          InvalidArgument("ops::", name_, ": expected a finite number, got ", operand.number()));
    }
    if (!operand.integer()) return operand.number();
    if (std::abs(operand.number()) > kMostExact) {
      error_.Update(InvalidArgument("ops::", name_, ": expected an integer below 2^53 in size, ",
                                    "which a float64 represents exactly, got ", operand.number()));
      return 0;
    }
    return static_cast<int64_t>(operand.number());
  }

  void CheckConfig(const Json& config, tfjob::Status& error) const {
    for (const auto& [key, value] : config.items()) {
      if (!value.is_number_float() || std::isfinite(value.get<double>())) continue;
      error.Update(InvalidArgument("ops::", name_, ": ", key, ": expected a finite number, got ",
                                   value.get<double>()));
    }
  }

  const char* const module_;
  const char* const name_;
  Json config_;
  Json args_ = Json::array();
  std::vector<Symbol> inputs_;
  tfjob::Status error_;
};

Symbol Unary(const char* module, const char* name, const Symbol& x, Json config = Json::object()) {
  return OperationCall(module, name, std::move(config)).With(x).Done();
}

Symbol Binary(const char* name, const Operand& x, const Operand& y) {
  return OperationCall(kNumpy, name).With(x).With(y).Done();
}

Symbol OverAxes(const char* name, const Symbol& x, const std::vector<int64_t>& axes, bool keepdims,
                const char* module = kNumpy) {
  Json config = {{"axis", axes.empty() ? Json() : Json(axes)}, {"keepdims", keepdims}};
  return Unary(module, name, x, std::move(config));
}

Json Bound(const std::optional<int64_t>& value) {
  return value ? Json(*value) : Json();
}

Json WrittenKey(const ops::Key& key) {
  switch (key.kind()) {
    case ops::Key::Kind::kIndex:
      return key.index();
    case ops::Key::Kind::kNewAxis:
      return nullptr;
    case ops::Key::Kind::kEllipsis:
      return {{"class_name", "__ellipsis__"}, {"config", Json::object()}};
    case ops::Key::Kind::kRange:
      break;
  }
  Json config = {{"start", Bound(key.start())}, {"stop", Bound(key.stop())}};
  config["step"] = Bound(key.step());
  return {{"class_name", "__slice__"}, {"config", std::move(config)}};
}

}  // namespace

Symbol operator+(const Operand& x, const Operand& y) {
  return Binary("Add", x, y);
}
Symbol operator-(const Operand& x, const Operand& y) {
  return Binary("Subtract", x, y);
}
Symbol operator*(const Operand& x, const Operand& y) {
  return Binary("Multiply", x, y);
}
Symbol operator/(const Operand& x, const Operand& y) {
  return Binary("TrueDivide", x, y);
}
Symbol operator-(const Symbol& x) {
  return Unary(kNumpy, "Negative", x);
}
Symbol operator<(const Operand& x, const Operand& y) {
  return Binary("Less", x, y);
}
Symbol operator<=(const Operand& x, const Operand& y) {
  return Binary("LessEqual", x, y);
}
Symbol operator>(const Operand& x, const Operand& y) {
  return Binary("Greater", x, y);
}
Symbol operator>=(const Operand& x, const Operand& y) {
  return Binary("GreaterEqual", x, y);
}

namespace ops {

Symbol Power(const Operand& x, const Operand& y) {
  return Binary("Power", x, y);
}
Symbol Maximum(const Operand& x, const Operand& y) {
  return Binary("Maximum", x, y);
}
Symbol Minimum(const Operand& x, const Operand& y) {
  return Binary("Minimum", x, y);
}
Symbol Equal(const Operand& x, const Operand& y) {
  return Binary("Equal", x, y);
}
Symbol NotEqual(const Operand& x, const Operand& y) {
  return Binary("NotEqual", x, y);
}
Symbol LogicalAnd(const Operand& x, const Operand& y) {
  return Binary("LogicalAnd", x, y);
}
Symbol LogicalOr(const Operand& x, const Operand& y) {
  return Binary("LogicalOr", x, y);
}
Symbol LogicalNot(const Symbol& x) {
  return Unary(kNumpy, "LogicalNot", x);
}
Symbol Where(const Symbol& condition, const Operand& x, const Operand& y) {
  return OperationCall(kNumpy, "Where").With(condition).With(x).With(y).Done();
}
Symbol Abs(const Symbol& x) {
  return Unary(kNumpy, "Absolute", x);
}
Symbol Exp(const Symbol& x) {
  return Unary(kNumpy, "Exp", x);
}
Symbol Log(const Symbol& x) {
  return Unary(kNumpy, "Log", x);
}
Symbol Sqrt(const Symbol& x) {
  return Unary(kNumpy, "Sqrt", x);
}
Symbol Rsqrt(const Symbol& x) {
  return Unary(kMath, "Rsqrt", x);
}
Symbol Square(const Symbol& x) {
  return Unary(kNumpy, "Square", x);
}
Symbol Sin(const Symbol& x) {
  return Unary(kNumpy, "Sin", x);
}
Symbol Cos(const Symbol& x) {
  return Unary(kNumpy, "Cos", x);
}
Symbol Erf(const Symbol& x) {
  return Unary(kMath, "Erf", x);
}
Symbol Clip(const Symbol& x, double low, double high) {
  return Unary(kNumpy, "Clip", x, {{"x_min", low}, {"x_max", high}});
}
Symbol Cast(const Symbol& x, const std::string& dtype) {
  return Unary(kCore, "Cast", x, {{"dtype", dtype}});
}
Symbol ZerosLike(const Symbol& x) {
  return Unary(kNumpy, "ZerosLike", x);
}
Symbol OnesLike(const Symbol& x) {
  return Unary(kNumpy, "OnesLike", x);
}

Symbol Relu(const Symbol& x) {
  return Unary(kNn, "Relu", x);
}
Symbol LeakyRelu(const Symbol& x, double negative_slope) {
  return Unary(kNn, "LeakyRelu", x, {{"negative_slope", negative_slope}});
}
Symbol Sigmoid(const Symbol& x) {
  return Unary(kNn, "Sigmoid", x);
}
Symbol LogSigmoid(const Symbol& x) {
  return Unary(kNn, "LogSigmoid", x);
}
Symbol Tanh(const Symbol& x) {
  return Unary(kNumpy, "Tanh", x);
}
Symbol Softplus(const Symbol& x) {
  return Unary(kNn, "Softplus", x);
}
Symbol Silu(const Symbol& x) {
  return Unary(kNn, "Silu", x);
}
Symbol Gelu(const Symbol& x, bool approximate) {
  return Unary(kNn, "Gelu", x, {{"approximate", approximate}});
}
Symbol Elu(const Symbol& x, double alpha) {
  return Unary(kNn, "Elu", x, {{"alpha", alpha}});
}
Symbol Softmax(const Symbol& x, int64_t axis) {
  return Unary(kNn, "Softmax", x, {{"axis", axis}});
}
Symbol LogSoftmax(const Symbol& x, int64_t axis) {
  return Unary(kNn, "LogSoftmax", x, {{"axis", axis}});
}

Symbol Sum(const Symbol& x, const std::vector<int64_t>& axes, bool keepdims) {
  return OverAxes("Sum", x, axes, keepdims);
}
Symbol Mean(const Symbol& x, const std::vector<int64_t>& axes, bool keepdims) {
  return OverAxes("Mean", x, axes, keepdims);
}
Symbol Max(const Symbol& x, const std::vector<int64_t>& axes, bool keepdims) {
  return OverAxes("Max", x, axes, keepdims);
}
Symbol Min(const Symbol& x, const std::vector<int64_t>& axes, bool keepdims) {
  return OverAxes("Min", x, axes, keepdims);
}
Symbol Var(const Symbol& x, const std::vector<int64_t>& axes, bool keepdims) {
  return OverAxes("Var", x, axes, keepdims);
}
Symbol Std(const Symbol& x, const std::vector<int64_t>& axes, bool keepdims) {
  return OverAxes("Std", x, axes, keepdims);
}
Symbol LogSumExp(const Symbol& x, const std::vector<int64_t>& axes, bool keepdims) {
  return OverAxes("Logsumexp", x, axes, keepdims, kMath);
}
Symbol Argmax(const Symbol& x, int64_t axis) {
  return Unary(kNumpy, "Argmax", x, {{"axis", axis}, {"keepdims", false}});
}

Symbol Reshape(const Symbol& x, const std::vector<int64_t>& shape) {
  return Unary(kNumpy, "Reshape", x, {{"newshape", shape}});
}
Symbol Transpose(const Symbol& x, const std::vector<int64_t>& axes) {
  return Unary(kNumpy, "Transpose", x, {{"axes", axes}});
}
Symbol ExpandDims(const Symbol& x, int64_t axis) {
  return Unary(kNumpy, "ExpandDims", x, {{"axis", axis}});
}
Symbol Squeeze(const Symbol& x, const std::vector<int64_t>& axes) {
  return Unary(kNumpy, "Squeeze", x, {{"axis", axes}});
}
Symbol Concatenate(const std::vector<Symbol>& xs, int64_t axis) {
  return OperationCall(kNumpy, "Concatenate", {{"axis", axis}}).With(xs).Done();
}
Symbol Stack(const std::vector<Symbol>& xs, int64_t axis) {
  return OperationCall(kNumpy, "Stack", {{"axis", axis}}).With(xs).Done();
}
Symbol Flip(const Symbol& x, const std::vector<int64_t>& axes) {
  return Unary(kNumpy, "Flip", x, {{"axis", axes}});
}
Symbol OneHot(const Symbol& x, int64_t num_classes, int64_t axis) {
  return Unary(kNn, "OneHot", x, {{"num_classes", num_classes}, {"axis", axis}});
}

Key Key::Range(std::optional<int64_t> start, std::optional<int64_t> stop,
               std::optional<int64_t> step) {
  Key key(0);
  key.kind_ = Kind::kRange;
  key.start_ = start;
  key.stop_ = stop;
  key.step_ = step;
  return key;
}
Key Key::Ellipsis() {
  Key key(0);
  key.kind_ = Kind::kEllipsis;
  return key;
}
Key Key::NewAxis() {
  Key key(0);
  key.kind_ = Kind::kNewAxis;
  return key;
}
Symbol GetItem(const Symbol& x, const std::vector<Key>& key) {
  Json parts = Json::array();
  for (const Key& part : key) parts.push_back(WrittenKey(part));
  return OperationCall(kNumpy, "GetItem").With(x).WithJson(std::move(parts)).Done();
}

Symbol Matmul(const Symbol& x, const Symbol& y) {
  return Binary("Matmul", x, y);
}
Symbol Einsum(const std::string& subscripts, const Symbol& x, const Symbol& y) {
  return OperationCall(kNumpy, "Einsum", {{"subscripts", subscripts}}).With(x).With(y).Done();
}

}  // namespace ops
}  // namespace tfjob::api
