#include "runtime/exec/program.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <new>
#include <random>

#include "runtime/graph/gradients.h"
#include "runtime/graph/ops.h"
#include "runtime/optimizer/optimizer.h"

namespace {
int64_t allocations = 0;
}

void* operator new(size_t bytes) {
  ++allocations;
  return std::malloc(bytes);
}
// This form of new is replaced, too, because AddressSanitizer requires each form of new to match
// delete.
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(bytes);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, size_t) noexcept {
  std::free(memory);
}

namespace tfjob::exec {
namespace {

using graph::Builder;
using graph::Output;
using variables::Kind;
using variables::VariableStore;

constexpr DType kF32 = DType::kFloat32;
constexpr DType kI64 = DType::kInt64;

// Pads the rows of every matrix, so that small nets also cover the code for padded rows.
int64_t Padded(DType, const Shape& shape) {
  const int64_t cols = shape.rank() == 0 ? 1 : shape.dim(-1);
  return shape.rank() == 2 ? cols + 3 : cols;
}

Device PaddingDevice() {
  Device device = CpuDevice();
  device.row_stride = Padded;
  return device;
}

std::unique_ptr<Program> MustCompile(Builder b, VariableStore& store,
                                     const Device& device = CpuDevice(),
                                     const CompileOptions& options = {}) {
  auto graph = std::move(b).Finish();
  EXPECT_TRUE(graph.ok()) << graph.status();
  auto program = Compile(*graph, store, device, options);
  EXPECT_TRUE(program.ok()) << program.status();
  return *std::move(program);
}

std::vector<float> Floats(const Program& program, std::string_view fetch) {
  const auto values = program.Fetch<float>(program.FindFetch(fetch));
  return {values.begin(), values.end()};
}

std::vector<float> Floats(const VariableStore& store, std::string_view variable) {
  const Tensor tensor = store.Find(variable)->ToTensor();
  return {tensor.data<float>().begin(), tensor.data<float>().end()};
}

// A 4-6-3 net with tanh and a sparse cross-entropy, trained by SGD.
constexpr int kIn = 4, kHidden = 6, kOut = 3;
constexpr double kRate = 0.5;

Builder Net(int batch) {
  Builder b;
  const Output x = Placeholder(b, "x", kF32, {batch, kIn});
  const Output labels = Placeholder(b, "labels", kI64, {batch});
  const Output step = Placeholder(b, "step", kI64, {});
  const std::vector<std::pair<std::string, Shape>> variables = {
      {"w1", {kIn, kHidden}}, {"b1", {kHidden}}, {"w2", {kHidden, kOut}}, {"b2", {kOut}}};
  std::vector<Output> v;
  for (const auto& [name, shape] : variables) v.push_back(ReadVariable(b, name, kF32, shape));
  const Output hidden = Tanh(b, BiasAdd(b, MatMul(b, x, v[0]), v[1]));
  const Output logits = BiasAdd(b, MatMul(b, hidden, v[2]), v[3]);
  const Output loss = Mean(b, SparseSoftmaxCrossEntropyWithLogits(b, logits, labels).loss, {});
  b.AddFetch("loss", loss);
  const std::vector<Output> gradients = Gradients(b, loss, v);
  optimizer::Optimizer sgd;
  sgd.learning_rate = kRate;
  for (size_t i = 0; i < v.size(); ++i) {
    b.AddFetch("gradient/" + variables[i].first, gradients[i]);
    ApplyOptimizer(b, variables[i].first, gradients[i], step, ToAttributes(sgd));
  }
  return b;
}

void CreateVariables(VariableStore& store) {
  std::mt19937 random(5);
  std::uniform_real_distribution<float> values(-1, 1);
  const std::pair<const char*, Shape> variables[] = {
      {"w1", {kIn, kHidden}}, {"b1", {kHidden}}, {"w2", {kHidden, kOut}}, {"b2", {kOut}}};
  for (const auto& [name, shape] : variables) {
    Tensor initial(kF32, shape);
    for (float& value : initial.data<float>()) value = values(random);
    ASSERT_TRUE((*store.Create(name, kF32, shape, Kind::kTrainable))->FromTensor(initial).ok());
  }
}

// The same net in plain loops over doubles.
struct Reference {
  std::vector<double> w1, b1, w2, b2;

  static std::vector<double> Doubles(const std::vector<float>& v) { return {v.begin(), v.end()}; }
  explicit Reference(const VariableStore& s)
      : w1(Doubles(Floats(s, "w1"))),
        b1(Doubles(Floats(s, "b1"))),
        w2(Doubles(Floats(s, "w2"))),
        b2(Doubles(Floats(s, "b2"))) {}

  // Runs one step. Returns the mean loss before the step.
  double Step(std::span<const float> x, std::span<const int64_t> labels) {
    const size_t batch = labels.size();
    Reference next = *this;
    double loss = 0;
    for (size_t n = 0; n < batch; ++n) {
      double h[kHidden], p[kOut], dh[kHidden] = {}, sum = 0;
      for (int j = 0; j < kHidden; ++j) {
        h[j] = b1[j];
        for (int i = 0; i < kIn; ++i) h[j] += x[n * kIn + i] * w1[i * kHidden + j];
        h[j] = std::tanh(h[j]);
      }
      for (int k = 0; k < kOut; ++k) {
        p[k] = b2[k];
        for (int j = 0; j < kHidden; ++j) p[k] += h[j] * w2[j * kOut + k];
        sum += p[k] = std::exp(p[k]);
      }
      loss -= std::log(p[labels[n]] / sum) / batch;
      for (int k = 0; k < kOut; ++k) {
        const double d = (p[k] / sum - (k == labels[n])) / batch;
        next.b2[k] -= kRate * d;
        for (int j = 0; j < kHidden; ++j) {
          next.w2[j * kOut + k] -= kRate * d * h[j];
          dh[j] += d * w2[j * kOut + k];
        }
      }
      for (int j = 0; j < kHidden; ++j) {
        const double d = dh[j] * (1 - h[j] * h[j]);
        next.b1[j] -= kRate * d;
        for (int i = 0; i < kIn; ++i) next.w1[i * kHidden + j] -= kRate * d * x[n * kIn + i];
      }
    }
    *this = next;
    return loss;
  }
};

struct Batch {
  std::vector<float> x;
  std::vector<int64_t> labels;
  int64_t step = 0;

  explicit Batch(int size, unsigned seed)
      : x(static_cast<size_t>(size * kIn)), labels(static_cast<size_t>(size)) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<float> values(-1, 1);
    for (float& value : x) value = values(random);
    for (int64_t& label : labels) label = static_cast<int64_t>(random() % kOut);
  }
  std::array<Feed, 3> Feeds() const {
    return {Feed::Of(std::span(x)), Feed::Of(std::span(labels)), Feed::Of(step)};
  }
};

void ExpectNear(const std::vector<float>& actual, const std::vector<double>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 2e-5) << i;
}

void TrainAndCompare(const Device& device, bool optimize) {
  VariableStore store(device.row_stride);
  CreateVariables(store);
  Reference reference(store);
  CompileOptions options;
  options.optimize = optimize;
  auto full = MustCompile(Net(8), store, device, options);
  auto remainder = MustCompile(Net(5), store, device, options);
  for (unsigned step = 0; step < 30; ++step) {
    Program& program = step % 3 == 2 ? *remainder : *full;
    const Batch batch(step % 3 == 2 ? 5 : 8, step);
    const Status run = program.Run(batch.Feeds());
    ASSERT_TRUE(run.ok()) << run;
    EXPECT_NEAR(Floats(program, "loss")[0], reference.Step(batch.x, batch.labels), 2e-5) << step;
  }
  ExpectNear(Floats(store, "w1"), reference.w1);
  ExpectNear(Floats(store, "b1"), reference.b1);
  ExpectNear(Floats(store, "w2"), reference.w2);
  ExpectNear(Floats(store, "b2"), reference.b2);
  EXPECT_EQ(store.Find("w1")->version(), 1 + 30);
}

TEST(Program, TrainsAsPlainLoopsDo) {
  TrainAndCompare(CpuDevice(), true);
}
TEST(Program, TrainsAsPlainLoopsDoWithoutPasses) {
  TrainAndCompare(CpuDevice(), false);
}
TEST(Program, TrainsAsPlainLoopsDoWithPaddedRows) {
  TrainAndCompare(PaddingDevice(), true);
}
TEST(Program, TrainsAsPlainLoopsDoWithPaddedRowsWithoutPasses) {
  TrainAndCompare(PaddingDevice(), false);
}

TEST(Program, TrainsAsPlainLoopsDoWithThreads) {
  ThreadPool pool("test", 2);
  TrainAndCompare(CpuDevice(&pool), true);
}

TEST(Program, MakesNoGradientOfAPlainSgdStepUponAMatrix) {
  VariableStore store;
  CreateVariables(store);
  CompileOptions options;
  options.fetches = {"loss", "gradient/w2"};  // a fetched gradient must be materialised
  auto program = MustCompile(Net(8), store, CpuDevice(), options);
  Reference reference(store);
  for (unsigned step = 0; step < 5; ++step) {
    const Batch batch(8, step);
    ASSERT_TRUE(program->Run(batch.Feeds()).ok());
    EXPECT_NEAR(Floats(*program, "loss")[0], reference.Step(batch.x, batch.labels), 2e-5);
  }
  ExpectNear(Floats(store, "w1"), reference.w1);
  ExpectNear(Floats(store, "w2"), reference.w2);
  const std::string text = program->ToString();
  EXPECT_NE(text.find("w1/Apply: MatMulAccumulate"), std::string::npos) << text;
  EXPECT_NE(text.find("w2/Apply: ApplyOptimizer"), std::string::npos) << text;
}

// The result must be correct even if the product reads the variable that it is added to.
TEST(Program, AccumulatesAProductOfTheVariableItself) {
  VariableStore store;
  const Tensor initial = Tensor::Of<float>({2, 2}, {1, 2, 3, 4});
  ASSERT_TRUE((*store.Create("w", kF32, {2, 2}, Kind::kTrainable))->FromTensor(initial).ok());
  Builder b;
  const Output w = ReadVariable(b, "w", kF32, {2, 2});
  optimizer::Optimizer sgd;
  sgd.learning_rate = 1;
  ApplyOptimizer(b, "w", MatMul(b, w, w), Placeholder(b, "step", kI64, {}), ToAttributes(sgd));
  auto program = MustCompile(std::move(b), store);
  const int64_t step = 0;
  ASSERT_TRUE(program->Run(std::array{Feed::Of(step)}).ok());
  EXPECT_NE(program->ToString().find("MatMulAccumulate"), std::string::npos);
  EXPECT_EQ(Floats(store, "w"), (std::vector<float>{1 - 7, 2 - 10, 3 - 15, 4 - 22}));
}

TEST(Program, DoesNotAllocateWhenItRuns) {
  VariableStore store;
  CreateVariables(store);
  auto program = MustCompile(Net(8), store);
  const Batch batch(8, 1);
  ASSERT_TRUE(program->Run(batch.Feeds()).ok());
  const int64_t before = allocations;
  for (int i = 0; i < 10; ++i) {
    const Status run = program->Run(batch.Feeds());
    if (!run.ok()) break;
  }
  EXPECT_EQ(allocations, before);
}

TEST(Program, AnnouncesGradientsInReverseLayerOrder) {
  VariableStore store;
  CreateVariables(store);
  CompileOptions options;
  options.announced = {"gradient/w1", "gradient/b1", "gradient/w2", "gradient/b2"};
  auto program = MustCompile(Net(8), store, CpuDevice(), options);
  const Batch batch(8, 1);
  std::vector<std::string> order;
  std::vector<std::vector<float>> seen;
  ASSERT_TRUE(program
                  ->Run(batch.Feeds(),
                        [&](int fetch) {
                          order.push_back(program->fetches()[static_cast<size_t>(fetch)].name);
                          seen.push_back(Floats(*program, order.back()));
                        })
                  .ok());
  EXPECT_EQ(order,
            (std::vector<std::string>{"gradient/b2", "gradient/w2", "gradient/b1", "gradient/w1"}));
  for (size_t i = 0; i < order.size(); ++i)
    EXPECT_EQ(seen[i], Floats(*program, order[i])) << order[i];
}

TEST(Program, NamesTheFeedThatDoesNotFit) {
  VariableStore store;
  CreateVariables(store);
  auto program = MustCompile(Net(8), store);
  const Batch batch(8, 1);
  const std::vector<float> before = Floats(store, "w1");
  std::array<Feed, 3> feeds = batch.Feeds();
  feeds[1] = {};
  EXPECT_EQ(Message(program->Run(feeds)), "feed labels is missing: expected int64[8]");
  feeds[1] = Feed::Of(std::span(batch.x).first(16));
  EXPECT_EQ(Message(program->Run(feeds)),
            "feed labels: expected int64[8] in 64 bytes, got float32 in 64 bytes");
  feeds[1] = Feed::Of(std::span(batch.labels).first(7));
  EXPECT_EQ(Message(program->Run(feeds)),
            "feed labels: expected int64[8] in 64 bytes, got int64 in 56 bytes");
  EXPECT_EQ(Message(program->Run(std::span(feeds).first(2))),
            "expected 3 feeds (x, labels, step), got 2");
  EXPECT_EQ(Floats(store, "w1"), before);
}

TEST(Compile, NamesWhatIsMissingOrDiffers) {
  VariableStore empty;
  auto graph = Net(8).graph();
  auto missing = Compile(graph, empty, CpuDevice());
  EXPECT_EQ(missing.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_NE(Message(missing.status()).find("there is no variable w1"), std::string::npos);

  VariableStore other;
  ASSERT_TRUE(other.Create("w1", kF32, {2, 2}, Kind::kTrainable).ok());
  EXPECT_EQ(Message(Compile(graph, other, CpuDevice()).status()),
            "node w1: variable w1 is float32[2,2], but the graph expects float32[4,6]");

  VariableStore store;
  CreateVariables(store);
  CompileOptions options;
  options.fetches = {"accuracy"};
  EXPECT_EQ(Message(Compile(graph, store, CpuDevice(), options).status()).substr(0, 38),
            "the graph has no fetch accuracy; it ha");
  options.fetches = {"loss"};
  options.announced = {"gradient/w1"};
  EXPECT_FALSE(Compile(graph, store, CpuDevice(), options).ok());
}

TEST(Compile, NamesTheOpThatTheDeviceLacks) {
  Device device = CpuDevice();
  device.kernels =
      std::make_shared<kernels::KernelTable>("/device:TPU:0", kernels::KernelTable::Entries{});
  Builder b;
  b.AddFetch("y", Exp(b, Placeholder(b, "x", kF32, {2})));
  VariableStore store;
  const Status status = Compile(b.graph(), store, device).status();
  EXPECT_EQ(status.code(), StatusCode::kUnimplemented);
  EXPECT_NE(Message(status).find("node Exp"), std::string::npos);
}

TEST(Program, RunsWithTheFetchesThatAreAskedForOnly) {
  VariableStore store;
  Builder b;
  const Output x = Placeholder(b, "x", kF32, {2});
  b.AddFetch("exp", Exp(b, x));
  b.AddFetch("square", Square(b, x));
  CompileOptions options;
  options.fetches = {"square"};
  auto program = MustCompile(std::move(b), store, CpuDevice(), options);
  const Tensor value = Tensor::Of<float>({2}, {2, 3});
  ASSERT_TRUE(program->Run(std::array{Feed::Of(value)}).ok());
  EXPECT_EQ(Floats(*program, "square"), (std::vector<float>{4, 9}));
  EXPECT_EQ(program->FindFetch("exp"), -1);
  EXPECT_EQ(program->ToString().find("Exp"), std::string::npos);
}

TEST(Program, ReadsSeeTheWritesBeforeThemOnly) {
  for (const bool padded : {false, true}) {
    const Device device = padded ? PaddingDevice() : CpuDevice();
    VariableStore store(device.row_stride);
    ASSERT_TRUE((*store.Create("v", kF32, {2, 2}, Kind::kMovingStatistic))
                    ->FromTensor(Tensor::Of<float>({2, 2}, {1, 2, 3, 4}))
                    .ok());
    Builder b;
    const Output before = ReadVariable(b, "v", kF32, {2, 2});
    AssignAdd(b, "v", Fill(b, kF32, {2, 2}, 10));
    const Output between = ReadVariable(b, "v", kF32, {2, 2});
    Assign(b, "v", Add(b, before, between));
    b.AddFetch("before", before);
    b.AddFetch("flat", Reshape(b, before, {4}));
    b.AddFetch("difference", Sub(b, ReadVariable(b, "v", kF32, {2, 2}), between));
    auto program = MustCompile(std::move(b), store, device);
    ASSERT_TRUE(program->Run({}).ok());
    EXPECT_EQ(Floats(*program, "before"), (std::vector<float>{1, 2, 3, 4}));
    EXPECT_EQ(Floats(*program, "flat"), (std::vector<float>{1, 2, 3, 4}));
    EXPECT_EQ(Floats(*program, "difference"), (std::vector<float>{1, 2, 3, 4}));
    EXPECT_EQ(Floats(store, "v"), (std::vector<float>{12, 14, 16, 18}));
  }
}

TEST(Program, KeepsFetchedFeedsAndVariablesAfterTheRun) {
  VariableStore store;
  ASSERT_TRUE(store.Create("v", kF32, {2}, Kind::kTrainable).ok());
  Builder b;
  const Output x = Placeholder(b, "x", kF32, {2});
  b.AddFetch("x", Identity(b, x));
  b.AddFetch("v", ReadVariable(b, "v", kF32, {2}));
  b.AddFetch("c", Scalar(b, kF32, 7));
  auto program = MustCompile(std::move(b), store);
  {
    const Tensor value = Tensor::Of<float>({2}, {2, 3});
    ASSERT_TRUE(program->Run(std::array{Feed::Of(value)}).ok());
  }
  ASSERT_TRUE(store.Find("v")->FromTensor(Tensor::Of<float>({2}, {8, 9})).ok());
  EXPECT_EQ(Floats(*program, "x"), (std::vector<float>{2, 3}));
  EXPECT_EQ(Floats(*program, "v"), (std::vector<float>{0, 0}));
  EXPECT_EQ(Floats(*program, "c"), (std::vector<float>{7}));
}

TEST(Program, ReusesTheMemoryOfALongChain) {
  VariableStore store;
  Builder b;
  const Output w = Placeholder(b, "w", kF32, {32, 32});
  Output x = w;
  for (int i = 0; i < 20; ++i) x = MatMul(b, x, w);
  b.AddFetch("y", Sum(b, x, {}));
  auto program = MustCompile(std::move(b), store);
  EXPECT_GE(program->unshared_bytes(), 20 * 32 * 32 * 4u);
  EXPECT_LE(program->arena_bytes(), 2 * 32 * 32 * 4u + 64u);
}

TEST(Program, WorksInPlaceOnlyOnWhatNobodyNeedsLater) {
  VariableStore store;
  Builder b;
  const Output x = Placeholder(b, "x", kF32, {2});
  const Output e = Exp(b, x);
  const Output n = Neg(b, e);
  const Output s = Square(b, n);
  b.AddFetch("n", n);
  b.AddFetch("y", Add(b, s, e));
  CompileOptions options;
  options.optimize = false;
  auto program = MustCompile(std::move(b), store, CpuDevice(), options);
  const Tensor value = Tensor::Of<float>({2}, {0, 0});
  ASSERT_TRUE(program->Run(std::array{Feed::Of(value)}).ok());
  EXPECT_EQ(Floats(*program, "n"), (std::vector<float>{-1, -1}));
  EXPECT_EQ(Floats(*program, "y"), (std::vector<float>{2, 2}));
  EXPECT_EQ(value.data<float>()[0], 0);  // the result is never written to the caller's memory
  EXPECT_EQ(program->arena_bytes(), 3 * 64u);
}

TEST(Program, PrintsItsScheduleAndMemory) {
  VariableStore store;
  ASSERT_TRUE(store.Create("w", kF32, {3, 2}, Kind::kTrainable).ok());
  Builder b;
  const Output x = Placeholder(b, "x", kF32, {4, 3});
  const Output y = Relu(b, MatMul(b, x, ReadVariable(b, "w", kF32, {3, 2})));
  b.AddFetch("y", y);
  b.AddFetch("mean", Mean(b, y, {}));
  CompileOptions options;
  options.announced = {"y"};
  auto program = MustCompile(std::move(b), store, CpuDevice(), options);
  const std::string text = program->ToString();
  EXPECT_EQ(text.substr(0, text.find(", workspace")),
            "program on /device:CPU:0: 2 kernels in 2 segments, arena of 128 bytes for 2 buffers "
            "(128 without reuse)");
  EXPECT_EQ(text.substr(text.find('\n') + 1),
            "feed x float32[4,3]\n"
            "segment 0\n"
            "  0 Relu: FusedMatMul(x float32[4,3], w float32[3,2]; activation=\"Relu\") -> @0 "
            "float32[4,2]\n"
            "  announce y\n"
            "segment 1\n"
            "  1 Mean: Mean(@0 float32[4,2]; axes=[0,1]) -> @64 float32[]\n"
            "fetch y = @0 float32[4,2]\n"
            "fetch mean = @64 float32[]\n");
}

}  // namespace
}  // namespace tfjob::exec
