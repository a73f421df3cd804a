// Steps of multi-layer perceptrons, from feeds to applied gradients, in one thread:
//   bazel run --config=release //runtime/exec:program_bench
// items_per_second is samples a CPU-second. BM_Overhead is a program of ten kernels that do next to nothing.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <random>

#include "runtime/exec/program.h"
#include "runtime/graph/gradients.h"
#include "runtime/graph/ops.h"
#include "runtime/optimizer/optimizer.h"

namespace tfjob::exec {
namespace {

using graph::Builder;
using graph::Output;

constexpr DType kF32 = DType::kFloat32;
constexpr DType kI64 = DType::kInt64;

// Dense layers of the given widths with relu in between, a sparse cross-entropy, and an optimizer.
class Mlp {
 public:
  Mlp(int64_t batch, std::vector<int64_t> widths, optimizer::Kind kind)
      : store_(RowStride), batch_(batch) {
    Builder b;
    const Output x = Placeholder(b, "x", kF32, {batch, widths[0]});
    const Output labels = Placeholder(b, "labels", kI64, {batch});
    const Output step = Placeholder(b, "step", kI64, {});
    std::vector<Output> trained;
    Output y = x;
    for (size_t i = 1; i < widths.size(); ++i) {
      const Output w = Variable(b, StrCat("w", i), {widths[i - 1], widths[i]});
      const Output bias = Variable(b, StrCat("b", i), {widths[i]});
      y = BiasAdd(b, MatMul(b, y, w), bias);
      if (i + 1 < widths.size()) y = Relu(b, y);
      trained.insert(trained.end(), {w, bias});
    }
    const Output loss = Mean(b, SparseSoftmaxCrossEntropyWithLogits(b, y, labels).loss, {});
    const std::vector<Output> gradients = Gradients(b, loss, trained);
    for (size_t i = 0; i < trained.size(); ++i) {
      ApplyOptimizer(b, b.graph().node(trained[i]).name, gradients[i], step,
                     ToAttributes(optimizer::Optimizer::Default(kind)));
    }
    b.AddFetch("loss", loss);
    auto graph = std::move(b).Finish();
    ENFORCE(graph.ok(), Message(graph.status()));
    auto program = Compile(*graph, store_, CpuDevice());
    ENFORCE(program.ok(), Message(program.status()));
    program_ = *std::move(program);
    x_.resize(static_cast<size_t>(batch * widths[0]), 0.5f);
    labels_.resize(static_cast<size_t>(batch), 3);
  }

  void Step() {
    const Feed feeds[] = {Feed::Of(std::span(x_)), Feed::Of(std::span(labels_)), Feed::Of(step_)};
    const Status run = program_->Run(feeds);
    ENFORCE(run.ok(), Message(run));
    ++step_;
  }

  int64_t batch() const { return batch_; }
  const Program& program() const { return *program_; }

 private:
  Output Variable(Builder& b, const std::string& name, const Shape& shape) {
    Tensor initial(kF32, shape);
    std::uniform_real_distribution<float> values(-0.05f, 0.05f);
    for (float& value : initial.data<float>()) value = values(random_);
    auto created = store_.Create(name, kF32, shape, variables::Kind::kTrainable);
    ENFORCE(created.ok() && (*created)->FromTensor(initial).ok(), "a new variable");
    return ReadVariable(b, name, kF32, shape);
  }

  std::mt19937 random_{1};
  variables::VariableStore store_;
  int64_t batch_;
  std::unique_ptr<Program> program_;
  std::vector<float> x_;
  std::vector<int64_t> labels_;
  int64_t step_ = 0;
};

void Train(benchmark::State& state, Mlp mlp) {
  for (auto _ : state) mlp.Step();
  state.SetItemsProcessed(state.iterations() * mlp.batch());
}

void BM_Adam128(benchmark::State& state) {
  Train(state, Mlp(32, {784, 128, 10}, optimizer::Kind::kAdam));
}
void BM_Sgd512(benchmark::State& state) {
  Train(state, Mlp(128, {784, 512, 512, 10}, optimizer::Kind::kSgd));
}
void BM_Overhead(benchmark::State& state) {
  Mlp mlp(1, {1, 1, 1}, optimizer::Kind::kSgd);
  state.counters["kernels"] =
      static_cast<double>(std::ranges::count(mlp.program().ToString(), '>'));
  Train(state, std::move(mlp));
}

BENCHMARK(BM_Adam128);
BENCHMARK(BM_Sgd512);
BENCHMARK(BM_Overhead);

}  // namespace
}  // namespace tfjob::exec

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
