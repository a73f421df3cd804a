// Tests functional models that call functions of keras.ops or of TensorFlow.
#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "runtime/model/functional_json.h"
#include "runtime/model/operations/operation.h"

namespace tfjob::model {
namespace {

// Returns a model with a single call of a keras.ops function that has these arguments.
Json Function(const std::string& module, const std::string& name, Json config, Json args) {
  Json layer = LayerJson(name, "f", std::move(config), {std::move(args)});
  layer["module"] = "keras.src.ops." + module;
  layer["registered_name"] = name;
  return Functional("m", {Input("a", 4), Input("b", 4), std::move(layer)},
                    {{"a", 0, 0}, {"b", 0, 0}}, {"f", 0, 0});
}

std::string ResultOf(const Json& json) {
  const StatusOr<Model> model = Read(json);
  if (!model.ok()) return std::string(Message(model.status()));
  const Json written = WriteKerasJson(*model);
  const StatusOr<Model> again = Read(written);
  EXPECT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(WriteKerasJson(*again), written);
  EXPECT_EQ(written["config"]["layers"][2]["inbound_nodes"][0]["args"].size(),
            json["config"]["layers"][2]["inbound_nodes"][0]["args"].size());
  return (*OutputTypes(*model, TwoInputs()))[0].ToString();
}

TEST(Operations, ReadsAndWritesFunctionsOfKerasOps) {
  const Json a = Tensor3("a"), b = Tensor3("b"), none = Json::object();
  const Json rest = {{"class_name", "__ellipsis__"}, {"config", none}};
  const Json all = {{"class_name", "__slice__"},
                    {"config", {{"start", nullptr}, {"stop", nullptr}, {"step", nullptr}}}};
  Json odd = all;
  odd["config"]["start"] = 1;
  odd["config"]["step"] = 2;
  EXPECT_EQ(ResultOf(Function("numpy", "Add", none, List(a, b))), "float32[4]");
  EXPECT_EQ(ResultOf(Function("numpy", "Subtract", none, List(1, a))), "float32[4]");
  EXPECT_EQ(ResultOf(Function("numpy", "Greater", none, List(a, 0.5))), "bool[4]");
  EXPECT_EQ(ResultOf(Function("numpy", "Stack", {{"axis", 1}}, List(List(a, b)))), "float32[2,4]");
  EXPECT_EQ(ResultOf(Function("numpy", "GetItem", none, List(a, List(all, odd)))), "float32[2]");
  EXPECT_EQ(ResultOf(Function("numpy", "GetItem", none, List(a, List(rest, nullptr)))),
            "float32[4,1]");
  EXPECT_EQ(ResultOf(Function("core", "Cast", {{"dtype", "int32"}}, List(a))), "int32[4]");
}

TEST(Operations, SelectElementsAtConstantIndices) {
  const Json a = Tensor3("a"), b = Tensor3("b"), none = Json::object();
  const Json all = {{"class_name", "__slice__"},
                    {"config", {{"start", nullptr}, {"stop", nullptr}, {"step", nullptr}}}};
  Json back = all;
  back["config"]["step"] = -3;
  EXPECT_EQ(ResultOf(Function("numpy", "GetItem", none, List(a, List(all, back)))), "float32[2]");
  back["config"]["step"] = 0;
  EXPECT_NE(ResultOf(Function("numpy", "GetItem", none, List(a, List(all, back))))
                .find("a step other than 0"),
            std::string::npos);
  const auto take = [&](Json indices, Json axis) {
    return ResultOf(
        Function("numpy", "Take", {{"axis", std::move(axis)}}, List(a, std::move(indices))));
  };
  EXPECT_EQ(take(List(3, -4, 0), 1), "float32[3]");
  EXPECT_EQ(take(List(List(1, 2), List(0, 0)), -1), "float32[2,2]");
  EXPECT_EQ(take(2, 1), "float32[]");
  EXPECT_NE(take(List(0, 4), 1).find("index 4 does not fit an axis of 4 elements"),
            std::string::npos);
  EXPECT_NE(take(-5, 1).find("index -5 does not fit"), std::string::npos);
  EXPECT_NE(take(0, 0).find("other than the batch"), std::string::npos);
  EXPECT_NE(take(b, 1).find("indices that are constant integers"), std::string::npos);
  EXPECT_NE(take(List(0.5), 1).find("indices that are constant integers"), std::string::npos);
  const auto slice = [&](Json starts, Json shape) {
    return ResultOf(
        Function("core", "Slice", {{"shape", std::move(shape)}}, List(a, std::move(starts))));
  };
  EXPECT_EQ(slice(List(0, 1), List(-1, 2)), "float32[2]");
  EXPECT_EQ(slice(List(0, 3), List(-1, -1)), "float32[1]");
  EXPECT_NE(slice(List(0, 3), List(-1, 2)).find("within the axis"), std::string::npos);
  EXPECT_NE(slice(List(0), List(-1)).find("for each of the 2 axes"), std::string::npos);
  EXPECT_NE(slice(List(1, 0), List(-1, 2)).find("all of the batch"), std::string::npos);
}

TEST(Operations, SplitAtIndices) {
  const Json a = Tensor3("a");
  const auto split = [&](Json at) {
    return ResultOf(
        Function("numpy", "Split", {{"indices_or_sections", std::move(at)}, {"axis", 1}}, List(a)));
  };
  EXPECT_EQ(split(2), "float32[2]");
  EXPECT_EQ(split(List(1, 3)), "float32[1]");
  EXPECT_EQ(split(List(3)), "float32[3]");
  EXPECT_NE(split(List(3, 2)).find("in ascending order"), std::string::npos);
  EXPECT_NE(split(List(5)).find("indices of an axis of 4 elements"), std::string::npos);
  EXPECT_NE(split(Json::array()).find("or a list of such integers"), std::string::npos);
}

TEST(Operations, ConstantArraysAreOperands) {
  const auto array = [](Json value) {
    return Json{{"class_name", "__numpy__"}, {"config", {{"value", value}, {"dtype", "float32"}}}};
  };
  const Json a = Tensor3("a"), none = Json::object();
  EXPECT_EQ(ResultOf(Function("numpy", "Multiply", none, List(a, array(List(1, 2, 3, 4.5))))),
            "float32[4]");
  EXPECT_NE(ResultOf(Function("numpy", "Add", none, List(array(List(List(1), List(2))), a)))
                .find("expected shapes that broadcast"),
            std::string::npos);
  EXPECT_EQ(ResultOf(Function("numpy", "Add", none, List(a, array(2)))), "float32[4]");
  for (const Json& bad : {Json(List(1, List(2))), Json("x"), Json(nullptr), Json(Json::array()),
                          Json(List(List(1), List(2, 3)))}) {
    EXPECT_NE(ResultOf(Function("numpy", "Add", none, List(a, array(bad))))
                  .find("config.value: expected a number, or nested lists of numbers of equal"),
              std::string::npos)
        << bad.dump();
  }
}

TEST(Operations, RefusesFunctionsAlongTheBatchAndHugeConstants) {
  const Json a = Tensor3("a"), none = Json::object();
  EXPECT_NE(ResultOf(Function("nn", "Softmax", {{"axis", 0}}, List(a))).find("not along the batch"),
            std::string::npos);
  for (const std::string name : {"Softmax", "LogSoftmax", "Sparsemax"}) {
    EXPECT_EQ(ResultOf(Function("nn", name, {{"axis", nullptr}}, List(a))),
              StrCat("m.json: layer f (", name,
                     "): config.layers[2].config.axis: expected one axis, got null"))
        << "Keras works on the elements of all examples together";
  }
  EXPECT_EQ(ResultOf(Function("nn", "Softmax", none, List(a))), "float32[4]");
  for (const Json& axis : {Json(0), Json(nullptr), Json(List(1, -2))}) {
    EXPECT_NE(ResultOf(Function("nn", "Normalize", {{"axis", axis}}, List(a)))
                  .find("not along the batch"),
              std::string::npos);
  }
  EXPECT_NE(ResultOf(Function("numpy", "Flip", {{"axis", 0}}, List(a))).find("the batch"),
            std::string::npos);
  EXPECT_NE(ResultOf(Function("nn", "OneHot", {{"num_classes", 1 << 30}}, List(a)))
                .find("an integer from 1 to 1048576"),
            std::string::npos);
  EXPECT_NE(ResultOf(Function("numpy", "Pad", {{"pad_width", 1}, {"mode", "constant"}}, List(a)))
                .find("pad_width: expected a list of pairs"),
            std::string::npos);
  EXPECT_EQ(ResultOf(Function("numpy", "Pad",
                              {{"pad_width", {{0, 0}, {1, 2}}}, {"mode", "constant"}}, List(a))),
            "float32[7]");
  EXPECT_EQ(ResultOf(Function("numpy", "Tile", {{"repeats", {2}}}, List(a))), "float32[8]");
  EXPECT_EQ(ResultOf(Function("core", "ConvertToTensor", none, List(a))), "float32[4]");
}

// Calls the function on an input of this shape. Returns the type of the result, or the error
// message.
std::string OfShape(const std::vector<int64_t>& example, const std::string& module,
                    const std::string& name, Json config, Json args) {
  Json model = Function(module, name, std::move(config), std::move(args));
  Json shape = List(nullptr);
  for (const int64_t dim : example) shape.push_back(dim);
  model["config"]["layers"][0]["config"]["batch_shape"] = std::move(shape);
  const StatusOr<Model> read = Read(model);
  if (!read.ok()) return std::string(Message(read.status()));
  const std::vector<TensorType> in = {{DType::kFloat32, Shape(example)}, {DType::kFloat32, {4}}};
  return (*OutputTypes(*read, in))[0].ToString();
}

TEST(Operations, TheNormOfSeveralAxesIsOfOrder2) {
  const auto of = [](const Json& axis, int order) {
    return OfShape({2, 3}, "nn", "Normalize", {{"axis", axis}, {"order", order}},
                   List(Tensor3("a")));
  };
  EXPECT_EQ(of(2, 1), "float32[2,3]");
  EXPECT_EQ(of(List(1, 2), 2), "float32[2,3]");
  EXPECT_NE(of(List(1, 2), 1).find("expected one axis with order 1, got 2"), std::string::npos);
}

TEST(Operations, AnAxisIsMovedToOnePlace) {
  const auto moved = [](const Json& source, const Json& destination) {
    return OfShape({2, 3, 4}, "numpy", "Moveaxis",
                   {{"source", source}, {"destination", destination}}, List(Tensor3("a")));
  };
  EXPECT_EQ(moved(List(1, 2), List(3, 1)), "float32[3,4,2]");
  const std::vector<std::pair<Json, Json>> twice = {
      {List(1, 2), List(1, 1)}, {List(1, 1), List(1, 2)}, {List(1, -3), List(1, 2)}};
  for (const auto& [source, destination] : twice) {
    EXPECT_NE(moved(source, destination).find("sources and destinations that differ"),
              std::string::npos)
        << moved(source, destination);
  }
}

// The size of the axis equals one of the batch sizes with which types are computed, so the axis
// could be mistaken for the batch axis.
TEST(Operations, AnAxisCannotPassForTheBatch) {
  const Json a = Tensor3("a"), none = Json::object();
  const Json array = {{"class_name", "__numpy__"},
                      {"config", {{"value", Json::array()}, {"dtype", "float32"}}}};
  for (const int64_t size : {1009, 1013}) {
    EXPECT_NE(OfShape({size}, "numpy", "Sum", {{"axis", 0}}, List(a)).find("keeps the batch"),
              std::string::npos);
    EXPECT_NE(OfShape({2}, "nn", "OneHot", {{"num_classes", size}, {"axis", 0}}, List(a))
                  .find("keeps the batch"),
              std::string::npos);
    Json wide = array;
    for (int64_t i = 0; i < size; ++i) wide["config"]["value"].push_back(List(List(1)));
    EXPECT_NE(OfShape({4}, "numpy", "Add", none, List(a, wide)).find("keeps the batch"),
              std::string::npos);
  }
}

// The first axis of the result has the batch size, but each example of the result depends on all
// examples.
TEST(Operations, AnEinsumCannotCombineExamples) {
  const auto of = [](const std::string& subscripts) {
    return OfShape({4}, "numpy", "Einsum", {{"subscripts", subscripts}},
                   List(Tensor3("a"), Tensor3("b")));
  };
  for (const char* subscripts : {"ij,kj->ik", "ij,kj->i", "bi,cj->bij", "bi,cj->bi"})
    EXPECT_NE(of(subscripts).find("keeps the batch"), std::string::npos) << subscripts;
  EXPECT_EQ(of("bi,bi->b"), "float32[]");
  EXPECT_EQ(of("bi,bj->bij"), "float32[4,4]");
}

TEST(Operations, IntegersThatDoNotFitAreErrors) {
  const Json a = Tensor3("a"), none = Json::object();
  const auto compared = [&](int64_t number) {
    Json model = Function("numpy", "Minimum", none, List(a, number));
    model["config"]["layers"][0]["config"]["dtype"] = "int32";
    const StatusOr<Model> read = Read(model);
    return read.ok() ? "accepted" : std::string(Message(read.status()));
  };
  EXPECT_EQ(compared(2147483647), "accepted");
  EXPECT_EQ(compared(-2147483648), "accepted");
  for (const int64_t number : {int64_t{2147483648}, int64_t{-2147483649}, int64_t{5000000000}}) {
    EXPECT_NE(compared(number).find(" is not a number of type int32"), std::string::npos)
        << compared(number);
  }
}

TEST(Operations, HugeResultsAreErrors) {
  const Json a = Tensor3("a"), none = Json::object();
  const auto slice = [](int64_t step) {
    return Json{{"class_name", "__slice__"},
                {"config", {{"start", nullptr}, {"stop", nullptr}, {"step", step}}}};
  };
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  EXPECT_NE(OfShape({4, 4}, "numpy", "Tile", {{"repeats", {1, kMost, 2}}}, List(a))
                .find("at most 2^40 elements"),
            std::string::npos);
  EXPECT_NE(OfShape({2000000, 2}, "numpy", "Flip", {{"axis", {1, 2}}}, List(a))
                .find("at most 1048576 elements to flip"),
            std::string::npos);
  EXPECT_EQ(OfShape({4, 2}, "numpy", "GetItem", none, List(a, List(slice(1), slice(kMost), 1))),
            "float32[1]");
  constexpr int64_t kLong = 600'000'000;  // slicing pads the axis to a multiple of the step
  EXPECT_NE(OfShape({kLong, 1}, "numpy", "GetItem", none,
                    List(a, List(slice(1), slice(kLong - 1), slice(2))))
                .find("at most 2^40 elements"),
            std::string::npos);
}

// Returns a model in the form of tf.keras 2 that calls a TensorFlow function once.
Json OldFunction(const std::string& function, Json call) {
  Json layer = {{"class_name", "TFOpLambda"},
                {"name", "f"},
                {"config", {{"name", "f"}, {"function", function}, {"dtype", "float32"}}},
                {"inbound_nodes", List(std::move(call))}};
  return Functional("m", {Input("a", 4), Input("b", 4), std::move(layer)},
                    {{"a", 0, 0}, {"b", 0, 0}}, {"f", 0, 0});
}

std::string OldResult(const std::string& function, Json call) {
  const StatusOr<Model> model = Read(OldFunction(function, std::move(call)));
  if (!model.ok()) return std::string(Message(model.status()));
  const Json written = WriteKerasJson(*model);
  const StatusOr<Model> again = Read(written);
  EXPECT_TRUE(again.ok()) << again.status();
  return StrCat(written["config"]["layers"][2]["class_name"].get<std::string>(), " ",
                (*OutputTypes(*model, TwoInputs()))[0].ToString());
}

TEST(Operations, ReadsFunctionsOfTensorflow) {
  const Json b = {"b", 0, 0}, all = {{"start", nullptr}, {"stop", nullptr}, {"step", nullptr}};
  EXPECT_EQ(OldResult("__operators__.add", List("a", 0, 0, Json{{"y", b}, {"name", nullptr}})),
            "Add float32[4]");
  EXPECT_EQ(OldResult("math.subtract", List("_CONSTANT_VALUE", -1, 1.5, Json{{"y", b}})),
            "Subtract float32[4]");
  EXPECT_EQ(OldResult("math.multiply", List("a", 0, 0, Json{{"y", {1, 2, 3, 4}}})),
            "Multiply float32[4]");
  EXPECT_EQ(OldResult("stack",
                      List(List("a", 0, 0, Json{{"axis", 1}}), List("b", 0, 0, Json{{"axis", 1}}))),
            "Stack float32[2,4]");
  EXPECT_EQ(OldResult("nn.softmax", List("a", 0, 0, Json{{"axis", nullptr}})), "Softmax float32[4]")
      << "in TensorFlow, None is the last axis";
  EXPECT_EQ(OldResult("math.argmax", List("a", 0, 0, Json{{"axis", 1}, {"output_type", "int32"}})),
            "Argmax int32[]");
  EXPECT_EQ(OldResult("__operators__.getitem",
                      List("a", 0, 0, Json{{"slice_spec", {all, {{"start", 1}, {"stop", 3}}}}})),
            "GetItem float32[2]");
}

TEST(Operations, SaysWhichFunctionsOfTensorflowItRefuses) {
  const std::string where = "m.json: config.layers[2].";
  EXPECT_TRUE(
      OldResult("math.sine", List("a", 0, 0, Json::object()))
          .starts_with(where + "config.function: the function tf.math.sine is not supported"));
  EXPECT_EQ(
      OldResult("linalg.matmul", List("a", 0, 0, Json{{"b", {"b", 0, 0}}, {"transpose_b", true}})),
      where +
          "inbound_nodes[0][3].transpose_b: expected false (no other value is supported), "
          "got true");
  EXPECT_EQ(OldResult("math.add", List("a", 0, 0, Json::object())),
            where + "inbound_nodes[0][3].y: expected a tensor or a number, but it is missing");
  EXPECT_EQ(OldResult("nn.relu", List("a", 0, 0, Json{{"threshold", 1}})),
            where + "inbound_nodes[0][3].threshold: this argument of tf.nn.relu is not supported");
  EXPECT_EQ(OldResult("nn.relu", Json("a")),
            where + "inbound_nodes[0]: expected a call in the form of tf.keras 2, got \"a\"");
  EXPECT_NE(
      OldResult("math.reduce_sum", List("a", 0, 0, Json{{"axis", 0}})).find("keeps the batch"),
      std::string::npos);
}

TEST(Operations, NamesThePartsOfTensorflowsFunctionsAsTheFileDoes) {
  const std::string f = "m.json: layer f (tf.", call = "): config.layers[2].inbound_nodes[0]";
  const Json b = {"b", 0, 0};
  EXPECT_EQ(OldResult("clip_by_value",
                      List("a", 0, 0, Json{{"clip_value_min", 0.0}, {"clip_value_max", b}})),
            f + "clip_by_value" + call + "[3].clip_value_max: expected a number, got a list");
  EXPECT_EQ(OldResult("roll", List("a", 0, 0, Json{{"shift", {1, 2}}, {"axis", {0, 1}}})),
            f + "roll" + call + "[3].shift: expected an integer, got a list");
  EXPECT_EQ(OldResult("reshape", List("a", 0, 0, Json{{"shape", {b, 2, 2}}})),
            f + "reshape" + call + "[3].shape[0]: expected an integer, got a list");
  EXPECT_EQ(OldResult("math.add", List("a", 0, 0, Json{{"y", "b"}})),
            f + "math.add" + call +
                "[3].y: \"b\" is not supported as an argument of a call; only the inputs are");
  EXPECT_EQ(OldResult("math.add", List("a", 0, 0, Json{{"y", List(List(1), List(2, 3))}})),
            "m.json: config.layers[2].inbound_nodes[0][3].y: expected a number, or nested lists of "
            "numbers of equal lengths, got a list");
  EXPECT_EQ(OldResult("math.add", List("a", 0, 0, Json{{"y", {"b", -1, 0}}})),
            "m.json: config.layers[2].inbound_nodes[0][3].y[1]: expected the number of a call, got "
            "-1");
}

TEST(Operations, RefusesConstantsAndDifferentArgumentsInAListOfTensors) {
  const Json axis = {{"axis", 1}}, constant = List("_CONSTANT_VALUE", -1, 0.5, axis);
  const std::string node = "m.json: config.layers[2].inbound_nodes[0]";
  EXPECT_EQ(OldResult("stack", List(List("a", 0, 0, axis), constant)),
            node +
                "[1]: expected a tensor (constants in a list of tensors are not supported), got a "
                "list");
  EXPECT_EQ(OldResult("stack", List(constant, List("a", 0, 0, axis))),
            node +
                "[0]: expected a tensor (constants in a list of tensors are not supported), got a "
                "list");
  EXPECT_EQ(OldResult("stack", List(List("a", 0, 0, axis), List("b", 0, 0, Json{{"axis", 2}}))),
            node + "[1][3]: expected the arguments that the call's first input has, got an object");
  EXPECT_EQ(OldResult("stack", List(List("a", 0, 0), List("b", 0, 0, axis))),
            node + "[1][3]: expected the arguments that the call's first input has, got an object");
  EXPECT_EQ(Error(SoftmaxOf(List(List("a", 0, 0), List("b", 0, 0, axis)))),
            node + "[1][3]: expected the arguments that the call's first input has, got an object");
}

// Calls the function on tensors of these types. Returns the type of the result, or the error
// message.
std::string OfTypes(DType a, DType b, std::string_view name,
                    const std::vector<CallOperand>& operands) {
  std::optional<layers::Operation> operation = layers::MakeOperation("keras.src.ops.numpy", name);
  if (!operation) return "no such operation";
  operation->operands = operands;
  if (operands.empty()) operation->list = {0, 1};
  const std::vector<TensorType> in = {{a, {4}}, {b, {4}}};
  const StatusOr<std::vector<TensorType>> out = operation->OutputTypes(in);
  return std::string(out.ok() ? Name((*out)[0].dtype) : Message(out.status()));
}

// The expected types are the results of keras.backend.result_type.
TEST(Operations, TypesArePromotedInEitherOrder) {
  using enum DType;
  struct Case {
    DType a, b, result;
  };
  const Case cases[] = {{kFloat32, kInt64, kFloat32},    {kFloat32, kInt32, kFloat32},
                        {kFloat32, kUInt8, kFloat32},    {kFloat32, kBool, kFloat32},
                        {kFloat32, kFloat64, kFloat64},  {kFloat32, kFloat16, kFloat32},
                        {kFloat64, kInt64, kFloat64},    {kFloat64, kBFloat16, kFloat64},
                        {kBFloat16, kFloat16, kFloat32}, {kBFloat16, kInt64, kBFloat16},
                        {kFloat16, kInt32, kFloat16},    {kFloat16, kBool, kFloat16},
                        {kInt64, kInt32, kInt64},        {kInt64, kUInt8, kInt64},
                        {kInt32, kUInt8, kInt32},        {kInt32, kBool, kInt32},
                        {kFloat32, kFloat32, kFloat32}};
  const CallOperand a{.input = 0}, b{.input = 1}, half{.number = 0.5};
  for (const Case& c : cases) {
    const std::string result(Name(c.result)), types = StrCat(Name(c.a), " and ", Name(c.b));
    for (const auto& [first, second] : {std::pair(c.a, c.b), std::pair(c.b, c.a)}) {
      for (const char* name : {"Add", "Maximum"})
        EXPECT_EQ(OfTypes(first, second, name, {a, b}), result) << name << " of " << types;
      EXPECT_EQ(OfTypes(first, second, "Greater", {a, b}), "bool") << types;
      EXPECT_EQ(OfTypes(first, second, "Where", {a, b, a}), result) << types;
      EXPECT_EQ(OfTypes(first, second, "Concatenate", {}), result) << types;
      const bool whole = c.result == kInt64 || c.result == kInt32;
      EXPECT_EQ(OfTypes(first, second, "Divide", {a, b}), whole ? "float32" : result) << types;
    }
  }
  EXPECT_EQ(OfTypes(kInt64, kInt64, "Where", {a, b, half}), "float32");
  EXPECT_EQ(OfTypes(kBFloat16, kInt64, "Multiply", {a, half}), "bfloat16");
}

// float32 cannot represent all offsets into the rows of a table.
TEST(Operations, ConstantsOfTensorflowsFunctionsKeepTheirType) {
  const auto sum = [](const Json& offsets) {
    Json json = OldFunction("__operators__.add", List("a", 0, 0, Json{{"y", offsets}}));
    json["config"]["layers"][0]["config"]["dtype"] = "int64";
    const StatusOr<Model> model = Read(json);
    if (!model.ok()) return std::string(Message(model.status()));
    const std::vector<TensorType> in = {{DType::kInt64, {4}}, {DType::kFloat32, {4}}};
    const Json written = WriteKerasJson(*model);
    return StrCat(
        (*OutputTypes(*model, in))[0].ToString(), " ",
        PrintJson(written["config"]["layers"][2]["inbound_nodes"][0]["args"][1]["config"]));
  };
  EXPECT_EQ(sum({0, 1, 16'777'217, 2}),
            "int64[4] {\"dtype\":\"int32\",\"value\":[0,1,16777217,2]}");
  EXPECT_EQ(sum({0, 1, 4'000'000'000, 2}),
            "int64[4] {\"dtype\":\"int64\",\"value\":[0,1,4000000000,2]}");
  EXPECT_EQ(sum({0, 1, 0.5, 2}), "float32[4] {\"dtype\":\"float32\",\"value\":[0.0,1.0,0.5,2.0]}");
  for (const Json& huge : {Json(List(0, int64_t{1} << 53)), Json(int64_t{1} << 53)}) {
    EXPECT_NE(sum(huge).find("[3].y: expected integers above -2^53 and below 2^53"),
              std::string::npos)
        << sum(huge);
  }
}

TEST(Operations, RefusesFunctionsThatCombineExamplesOrAreUnknown) {
  const Json a = Tensor3("a"), none = Json::object();
  const Json all = {{"class_name", "__slice__"}, {"config", {{"start", 0}, {"stop", 2}}}};
  const std::string mixed =
      "does not fit after layer a (InputLayer): expected a function of each example, whose result "
      "keeps the batch as its first axis";
  EXPECT_EQ(ResultOf(Function("numpy", "Mean", {{"axis", 0}}, List(a))),
            "m.json: layer f (Mean) " + mixed);
  EXPECT_EQ(ResultOf(Function("numpy", "Reshape", {{"newshape", {-1, 2}}}, List(a))),
            "m.json: layer f (Reshape) " + mixed);
  EXPECT_NE(ResultOf(Function("numpy", "GetItem", none, List(a, 0))).find("it is the batch"),
            std::string::npos);
  EXPECT_NE(
      ResultOf(Function("numpy", "GetItem", none, List(a, List(all)))).find("all of the batch"),
      std::string::npos);
  EXPECT_EQ(ResultOf(Function("numpy", "Sine", none, List(a))).substr(0, 84),
            "m.json: config.layers[2]: the function Sine of keras.src.ops.numpy is not supported;");
  EXPECT_EQ(ResultOf(Function("numpy", "Add", none, List(a))),
            "m.json: layer f (Add): a call lacks its argument x2");
}

}  // namespace
}  // namespace tfjob::model
