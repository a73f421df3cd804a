// Tests that programs run their exchanges, and that the gradient of an exchange is the gradient of
// the replicas' common loss.
#include "runtime/exec/exchange.h"

#include <gtest/gtest.h>

#include <array>
#include <barrier>
#include <thread>

#include "runtime/exec/fake_device.h"
#include "runtime/exec/program.h"
#include "runtime/graph/gradients.h"
#include "runtime/graph/ops.h"

namespace tfjob::exec {
namespace {

using graph::Builder;
using graph::Output;

constexpr DType kF32 = DType::kFloat32, kF64 = DType::kFloat64;

// Records the number of each exchange, and adds this number plus 1 to the values. The exchange with
// the number `failing` fails.
class Recorder : public Exchange {
 public:
  explicit Recorder(int64_t failing = -1) : failing_(failing) {}
  Status AllReduceMean(int64_t number, DType dtype, std::span<std::byte> values) override {
    EXPECT_EQ(dtype, kF32);
    numbers.push_back(number);
    if (number == failing_) return Unavailable("a replica is lost");
    auto* const floats = reinterpret_cast<float*>(values.data());
    for (size_t i = 0; i < values.size() / sizeof(float); ++i)
      floats[i] += static_cast<float>(number + 1);
    return OkStatus();
  }
  std::vector<int64_t> numbers;

 private:
  const int64_t failing_;
};

// Contains two equal exchanges of a constant, which must be neither merged nor folded; an exchange
// whose result is not used, which must not be dropped; and an exchange between elementwise ops,
// which must not be fused.
graph::Graph FourExchanges() {
  Builder b;
  const Output x = Placeholder(b, "x", kF32, {2});
  const Output constant = Const(b, Tensor::Of<float>({2}, {10, 20}));
  const Output first = AllReduceMean(b, constant), second = AllReduceMean(b, constant);
  AllReduceMean(b, x);
  const Output y = Neg(b, AllReduceMean(b, Square(b, x)));
  b.AddFetch("y", Add(b, y, Add(b, first, second)));
  auto graph = std::move(b).Finish();
  EXPECT_TRUE(graph.ok()) << graph.status();
  return *std::move(graph);
}

std::vector<float> ValuesOf(Program& program) {
  const std::array<float, 2> x = {1, 3};
  const std::vector<Feed> feeds = {Feed::Of(std::span<const float>(x))};
  EXPECT_EQ(program.Run(feeds), OkStatus());
  const auto y = program.Fetch<float>(program.FindFetch("y"));
  return {y.begin(), y.end()};
}

TEST(Exchanges, RunOnceEachInTheirOrder) {
  for (const bool optimize : {false, true}) {
    Recorder recorder;
    variables::VariableStore store;
    auto program =
        Compile(FourExchanges(), store, CpuDevice(), {.exchange = &recorder, .optimize = optimize});
    ASSERT_TRUE(program.ok()) << program.status();
    EXPECT_EQ(ValuesOf(**program), (std::vector<float>{11 + 12 - 5, 21 + 22 - 13}));
    EXPECT_EQ(recorder.numbers, (std::vector<int64_t>{0, 1, 2, 3}));
  }
}

TEST(Exchanges, ReturnTheirInputWithoutOtherReplicas) {
  for (const Device& device : {CpuDevice(), FakeDevice(1)}) {
    variables::VariableStore store(device.row_stride, device.runtime);
    auto program = Compile(FourExchanges(), store, device);
    ASSERT_TRUE(program.ok()) << program.status();
    EXPECT_EQ(ValuesOf(**program), (std::vector<float>{20 - 1, 40 - 9}));
  }
}

TEST(Exchanges, EndTheRunIfTheyFail) {
  Recorder recorder(/*failing=*/1);
  variables::VariableStore store;
  auto program = *Compile(FourExchanges(), store, CpuDevice(), {.exchange = &recorder});
  const std::array<float, 2> x = {1, 3};
  const std::vector<Feed> feeds = {Feed::Of(std::span<const float>(x))};
  EXPECT_EQ(program->Run(feeds), Unavailable("AllReduceMean_1: a replica is lost"));
  EXPECT_EQ(recorder.numbers, (std::vector<int64_t>{0, 1}));
}

TEST(Exchanges, AreRefusedOnADeviceThatIsNotImmediate) {
  Recorder recorder;
  const Device device = FakeDevice(1);
  variables::VariableStore store(device.row_stride, device.runtime);
  const Status status = Compile(FourExchanges(), store, device, {.exchange = &recorder}).status();
  EXPECT_EQ(status.code(), StatusCode::kUnimplemented);
  EXPECT_EQ(Message(status).substr(0, 62),
            "node AllReduceMean: AllReduceMean exchanges values with other ");
}

TEST(Exchanges, AreListedWithTheAnnouncementsBetweenThem) {
  Builder b;
  const Output x = Placeholder(b, "x", kF32, {4, 2});
  const Output ids = Placeholder(b, "ids", DType::kInt32, {3});
  const Output early = Exp(b, x);         // 2
  AllReduceMean(b, Sum(b, x, {0}));       // 3, 4
  const Output rows = Gather(b, x, ids);  // 5, may fail
  AllReduceMean(b, Sum(b, rows, {1}));    // 6, 7
  b.AddFetch("early", early);
  b.AddFetch("late", Neg(b, x));  // 8
  const graph::Graph graph = *std::move(b).Finish();
  const std::vector<PlannedExchange> exchanges = ExchangesOf(graph);
  ASSERT_EQ(exchanges.size(), 2u);
  EXPECT_EQ(exchanges[0].name, "AllReduceMean");
  EXPECT_EQ(exchanges[0].position, 4);
  EXPECT_EQ(exchanges[0].elements, 2);
  EXPECT_EQ(exchanges[1].name, "AllReduceMean_1");
  EXPECT_EQ(exchanges[1].position, 7);
  EXPECT_EQ(exchanges[1].elements, 3);
  // Nothing is announced before the Gather has accepted its ids.
  EXPECT_EQ(AnnouncedAt(graph, {"early", "late"}), (std::vector<int>{5, 8}));
}

// Two replicas, which are threads, with 3 and 1 examples.
constexpr std::array<double, 2> kWeights = {0.75, 0.25};

class Pair {
 public:
  class Member : public Exchange {
   public:
    Member(Pair& pair, size_t rank) : pair_(pair), rank_(rank) {}
    Status AllReduceMean(int64_t, DType, std::span<std::byte> bytes) override {
      const std::span<double> own(reinterpret_cast<double*>(bytes.data()),
                                  bytes.size() / sizeof(double));
      pair_.values_[rank_].assign(own.begin(), own.end());
      pair_.barrier_.arrive_and_wait();
      for (size_t i = 0; i < own.size(); ++i)
        own[i] = kWeights[0] * pair_.values_[0][i] + kWeights[1] * pair_.values_[1][i];
      pair_.barrier_.arrive_and_wait();
      return OkStatus();
    }

   private:
    Pair& pair_;
    const size_t rank_;
  };

 private:
  std::barrier<> barrier_{2};
  std::array<std::vector<double>, 2> values_;
};

// Replica r minimises the sum of c·tanh(m·x), where m is the mean of x² over the replicas.
std::unique_ptr<Program> LossOf(size_t rank, Exchange& exchange, variables::VariableStore& store) {
  Builder b;
  const Output x = Placeholder(b, "x", kF64, {3});
  const Output c = Const(
      b, rank == 0 ? Tensor::Of<double>({3}, {1, -2, 0.5}) : Tensor::Of<double>({3}, {-0.3, 4, 1}));
  const Output mean = AllReduceMean(b, Square(b, x));
  const Output loss = Sum(b, Mul(b, c, Tanh(b, Mul(b, mean, x))), {});
  const std::vector<Output> inputs = {x};
  b.AddFetch("loss", loss);
  b.AddFetch("gradient", Gradients(b, loss, inputs)[0]);
  auto program = Compile(*std::move(b).Finish(), store, CpuDevice(), {.exchange = &exchange});
  EXPECT_TRUE(program.ok()) << program.status();
  return *std::move(program);
}

using Inputs = std::array<std::array<double, 3>, 2>;

TEST(Exchanges, HaveTheGradientOfTheCommonLoss) {
  Pair pair;
  std::array<Pair::Member, 2> members = {Pair::Member(pair, 0), Pair::Member(pair, 1)};
  std::array<variables::VariableStore, 2> stores;
  std::array<std::unique_ptr<Program>, 2> programs = {LossOf(0, members[0], stores[0]),
                                                      LossOf(1, members[1], stores[1])};
  const auto run = [&](const Inputs& x) {
    std::array<std::thread, 2> threads;
    for (size_t r = 0; r < 2; ++r) {
      threads[r] = std::thread([&, r] {
        const std::vector<Feed> feeds = {Feed::Of(std::span<const double>(x[r]))};
        EXPECT_EQ(programs[r]->Run(feeds), OkStatus());
      });
    }
    for (std::thread& thread : threads) thread.join();
    return kWeights[0] * programs[0]->Fetch<double>(0)[0] +
           kWeights[1] * programs[1]->Fetch<double>(0)[0];
  };
  Inputs x = {{{0.3, -0.7, 1.1}, {-0.2, 0.9, 0.4}}};
  run(x);
  Inputs gradients;
  for (size_t r = 0; r < 2; ++r)
    for (size_t i = 0; i < 3; ++i) gradients[r][i] = programs[r]->Fetch<double>(1)[i];
  for (size_t r = 0; r < 2; ++r) {
    for (size_t i = 0; i < 3; ++i) {
      constexpr double kStep = 1e-6;
      const double value = x[r][i];
      x[r][i] = value + kStep;
      const double above = run(x);
      x[r][i] = value - kStep;
      const double below = run(x);
      x[r][i] = value;
      EXPECT_NEAR(kWeights[r] * gradients[r][i], (above - below) / (2 * kStep), 1e-7)
          << "replica " << r << ", element " << i;
    }
  }
}

}  // namespace
}  // namespace tfjob::exec
