// Tests the errors of Session::Function and of steps.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/api/programs.h"

namespace {

namespace ops = tj::ops;
using Symbols = std::vector<tj::Symbol>;

tj::Tensor Column(const std::vector<float>& values) {
  return tj::Tensor::Of({static_cast<int64_t>(values.size()), 1}, values).value();
}

tj::Model Linear() {
  return tj::Sequential({tj::Input{.shape = {1}}, tj::Dense{.units = 1}});
}

std::string ErrorOf(const tj::Session& session, const tj::StepBody& body) {
  const auto made = session.Function({{.shape = {1}, .name = "x"}}, body);
  return made.ok() ? "accepted" : made.status().message();
}

class FunctionErrors : public testing::Test {
 protected:
  // Expects that Session::Function returns an error that contains `part`.
  void Expect(const std::string& part, const tj::StepBody& body) {
    const std::string error = ErrorOf(session_, body);
    EXPECT_NE(error.find(part), std::string::npos) << error;
  }

  const tj::Session session_{tj::Strategy::OneDevice()};
  const tj::CompiledModel model_ = session_.Compile(Linear(), {}).value();
};

TEST_F(FunctionErrors, NameTheValueThatDoesNotFit) {
  const tj::CompiledModel open =
      session_.Compile(tj::Sequential({tj::Dense{.units = 1}}), {}).value();
  Expect("calls no model", [](tj::Step& step, const Symbols& in) { step.Return("x", in[0]); });
  Expect("have no values yet",
         [&](tj::Step& step, const Symbols& in) { step.Return("y", step.Call(open, in[0])); });
  Expect("one row per example", [&](tj::Step& step, const Symbols& in) {
    step.Return("y", ops::Sum(step.Call(model_, in[0])));
  });
  Expect("the layer has variables", [&](tj::Step& step, const Symbols& in) {
    step.Return("y", tj::Dense{.units = 1}(step.Call(model_, in[0])));
  });
  Expect("already applies gradients", [&](tj::Step& step, const Symbols& in) {
    const tj::Symbol loss = ops::Sum(step.Call(model_, in[0]));
    step.Minimize(model_, loss);
    step.Minimize(model_, loss);
  });
  Expect("axis: expected 0", [&](tj::Step& step, const Symbols& in) {
    step.Return("y", step.Reduce(tj::Reduction::kSum, step.Call(model_, in[0]), 1));
  });
  Expect("got an Input", [&](tj::Step& step, const Symbols& in) {
    const tj::Symbol input = tj::Input{.shape = {1}};
    step.Return("y", step.Call(model_, in[0]) + input);
  });
}

TEST_F(FunctionErrors, NameOutputsThatACallDoesNotHave) {
  Expect("expected one of the 1 outputs", [&](tj::Step& step, const Symbols& in) {
    step.Return("y", step.Call(model_, in[0]).Output(1));
  });
  Expect("got output -1", [&](tj::Step& step, const Symbols& in) {
    step.Return("y", step.Call(model_, in[0]).Output(-1) + 1);
  });
  Expect("got output 7", [&](tj::Step& step, const Symbols& in) {
    const tj::Symbol loss = ops::Sum(step.Call(model_, in[0]));
    const Symbols gradients = step.Gradients(loss, step.TrainableVariables(model_));
    step.Apply(model_, {gradients[0], gradients[1].Output(7)});
  });
}

TEST_F(FunctionErrors, SayWhatToChange) {
  Expect("already returns \"y\"", [&](tj::Step& step, const Symbols& in) {
    step.Return("y", step.Call(model_, in[0]));
    step.Return("y", in[0]);
  });
  Expect("axes of the examples are aligned", [&](tj::Step& step, const Symbols& in) {
    step.Return("y", step.Call(model_, in[0]) - ops::Reshape(in[0], {-1}));
  });
  Expect("at least one value", [&](tj::Step& step, const Symbols& in) {
    step.Return("y", step.Gradients(ops::Sum(step.Call(model_, in[0])), {})[0]);
  });
  Expect("tried with 1013 examples", [&](tj::Step& step, const Symbols& in) {
    step.Return("y", ops::Reshape(step.Call(model_, in[0]), {-1, 2}));
  });
  Expect("x_max: expected a finite number", [&](tj::Step& step, const Symbols& in) {
    step.Return("y", ops::Clip(step.Call(model_, in[0]), 0, INFINITY));
  });
  Expect("deviation of at least 0", [&](tj::Step& step, const Symbols& in) {
    step.Return("y", step.Call(model_, in[0]) + step.RandomNormal({1}, 0, -1));
  });
}

TEST_F(FunctionErrors, RefuseModelsOfOtherOwners) {
  tj::CompiledModel source = session_.Compile(Linear(), {}).value();
  const tj::CompiledModel moved = std::move(source);
  Expect("been moved from", [&](tj::Step& step, const Symbols& in) {
    step.Return("y", step.Call(source, in[0]));  // NOLINT(bugprone-use-after-move)
  });
  const tj::Session another(tj::Strategy::OneDevice());
  EXPECT_NE(ErrorOf(another, [&](tj::Step& step,
                                 const Symbols& in) { step.Return("y", step.Call(model_, in[0])); })
                .find("another session"),
            std::string::npos);
  EXPECT_NE(ErrorOf(another,
                    [&](tj::Step& step, const Symbols&) {
                      step.Return("kernel", step.TrainableVariables(model_)[0]);
                    })
                .find("another session"),
            std::string::npos);
}

TEST_F(FunctionErrors, RefuseValuesOfOtherFunctions) {
  Symbols kept;
  Expect("accepted", [&](tj::Step& step, const Symbols& in) {
    kept = {step.Call(model_, in[0])};
    step.Return("y", kept[0]);
  });
  Expect("another function", [&](tj::Step& step, const Symbols& in) {
    step.Return("y", step.Call(model_, in[0]) + kept[0]);
  });
  EXPECT_NE(tj::Functional(kept[0], kept[0]).status().message().find("step of a Function"),
            std::string::npos);
}

TEST_F(FunctionErrors, NameTheArraysOfTheBatch) {
  tj::Function made = session_
                          .Function({{.shape = {1}, .name = "x"}},
                                    [&](tj::Step& step, const Symbols& in) {
                                      step.Return("y", step.Call(model_, in[0]));
                                    })
                          .value();
  EXPECT_NE(made({}).status().message().find("no array"), std::string::npos);
  tj::Function pair =
      session_
          .Function({{.shape = {1}, .name = "real"}, {.shape = {1}, .name = "noise"}},
                    [&](tj::Step& step, const Symbols& in) {
                      step.Return("y", step.Call(model_, in[0] + in[1]));
                    })
          .value();
  EXPECT_TRUE(pair({.x = Column({1}), .y = Column({1})}).ok()) << "by their positions";
  const tj::Batch misspelt = {.y = Column({1}),
                              .inputs = {{"real", Column({1})}, {"nosie", Column({1})}}};
  const std::string message = pair(misspelt).status().message();
  EXPECT_NE(message.find("noise: the batch has no array"), std::string::npos) << message;
  EXPECT_NE(message.find("nosie"), std::string::npos) << message;
  EXPECT_EQ(made({.x = tj::Tensor(tj::DType::kFloat64, {2, 1})}).status().message(),
            "x: expected an array of examples of the type float32[1], got float64[2,1]");
}

}  // namespace
