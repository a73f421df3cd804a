#include "runtime/exec/memory_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <random>
#include <set>

#include "runtime/exec/fake_device.h"
#include "runtime/exec/program.h"
#include "runtime/graph/gradients.h"
#include "runtime/graph/ops.h"

namespace tfjob::exec {
namespace {

using graph::Builder;
using graph::Output;

constexpr DType kF32 = DType::kFloat32;

void ExpectDisjoint(const std::vector<Lifetime>& buffers, const MemoryPlan& plan) {
  for (size_t i = 0; i < buffers.size(); ++i) {
    EXPECT_EQ(plan.offsets[i] % 64, 0u);
    EXPECT_LE(plan.offsets[i] + buffers[i].bytes, plan.arena_bytes);
    for (size_t j = 0; j < i; ++j) {
      const bool together =
          buffers[i].first <= buffers[j].last && buffers[j].first <= buffers[i].last;
      const bool apart = plan.offsets[i] + buffers[i].bytes <= plan.offsets[j] ||
                         plan.offsets[j] + buffers[j].bytes <= plan.offsets[i];
      EXPECT_TRUE(!together || apart) << i << " and " << j;
    }
  }
}

TEST(PlanMemory, GivesTheMemoryOfADeadBufferToTheNext) {
  // In a chain, each buffer lives for two steps, so the memory of two buffers suffices.
  const std::vector<Lifetime> chain = {{1024, 0, 1}, {1024, 1, 2}, {1024, 2, 3}, {1024, 3, 4}};
  const MemoryPlan plan = PlanMemory(chain);
  ExpectDisjoint(chain, plan);
  EXPECT_EQ(plan.arena_bytes, 2048u);
  EXPECT_EQ(plan.unshared_bytes, 4096u);
}

TEST(PlanMemory, PutsSmallBuffersIntoGaps) {
  const std::vector<Lifetime> buffers = {
      {4096, 0, 1}, {2048, 2, 5}, {2048, 2, 3}, {1024, 4, 5}, {64, 0, 5}};
  const MemoryPlan plan = PlanMemory(buffers);
  ExpectDisjoint(buffers, plan);
  EXPECT_EQ(plan.arena_bytes, 4096u + 64u);
}

TEST(PlanMemory, NeverOverlapsWhatLivesTogether) {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<Lifetime> buffers;
    size_t peak = 0;
    for (int i = 0; i < 30; ++i) {
      const int first = static_cast<int>(random() % 40);
      buffers.push_back({64 * (1 + random() % 50), first, first + static_cast<int>(random() % 8)});
    }
    for (int step = 0; step < 48; ++step) {
      size_t live = 0;
      for (const Lifetime& b : buffers) live += b.first <= step && step <= b.last ? b.bytes : 0;
      peak = std::max(peak, live);
    }
    const MemoryPlan plan = PlanMemory(buffers);
    ExpectDisjoint(buffers, plan);
    EXPECT_GE(plan.arena_bytes, peak);
    EXPECT_LE(plan.arena_bytes, peak * 3 / 2);
  }
}

TEST(PlanMemory, TakesNothingForNothing) {
  EXPECT_EQ(PlanMemory({}).arena_bytes, 0u);
  const MemoryPlan empty = PlanMemory({{0, 0, 0}, {0, 0, 0}});
  EXPECT_NE(empty.offsets[0], empty.offsets[1]);
}

std::unique_ptr<Program> MustCompile(Builder b, variables::VariableStore& store,
                                     const Device& device, const CompileOptions& options) {
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

// Fetches the gradients of the sum of the squares of a 4-6-3 net with tanh. Its variables are 0.5.
Builder Net(variables::VariableStore& store) {
  Builder b;
  std::vector<Output> v;
  const std::pair<const char*, Shape> variables[] = {
      {"w1", {4, 6}}, {"b1", {6}}, {"w2", {6, 3}}, {"b2", {3}}};
  for (const auto& [name, shape] : variables) {
    if (store.Find(name) == nullptr) {
      Tensor initial(kF32, shape);
      std::ranges::fill(initial.data<float>(), 0.5F);
      EXPECT_TRUE((*store.Create(name, kF32, shape, variables::Kind::kTrainable))
                      ->FromTensor(initial)
                      .ok());
    }
    v.push_back(ReadVariable(b, name, kF32, shape));
  }
  const Output hidden =
      Tanh(b, BiasAdd(b, MatMul(b, Placeholder(b, "x", kF32, {8, 4}), v[0]), v[1]));
  const Output loss = Sum(b, Square(b, BiasAdd(b, MatMul(b, hidden, v[2]), v[3])), {});
  const std::vector<Output> gradients = Gradients(b, loss, v);
  for (size_t i = 0; i < v.size(); ++i)
    b.AddFetch(StrCat("gradient/", variables[i].first), gradients[i]);
  return b;
}

// Memory for the placed fetches of a program, with a guard after each.
class Places {
 public:
  static constexpr size_t kGuard = 16;

  explicit Places(Program& program) {
    for (int fetch = 0; fetch < std::ssize(program.fetches()); ++fetch) {
      if (!program.Places(fetch)) continue;
      const Port& port = program.fetches()[static_cast<size_t>(fetch)];
      Tensor& memory = memory_[port.name];
      memory = Tensor(kF32, {port.type.shape.num_elements() + static_cast<int64_t>(kGuard)});
      std::ranges::fill(memory.data<float>(), -7.0F);
      program.Place(fetch, std::as_writable_bytes(Values(port.name)));
    }
  }

  size_t count() const { return memory_.size(); }
  std::span<float> Values(const std::string& fetch) {
    const std::span<float> all = memory_.at(fetch).data<float>();
    return all.first(all.size() - kGuard);
  }
  void ExpectGuards() {
    for (auto& [fetch, memory] : memory_) {
      for (const float value : memory.data<float>().last(kGuard)) EXPECT_EQ(value, -7) << fetch;
    }
  }

 private:
  std::map<std::string, Tensor> memory_;
};

// As in an exchange with other replicas, the owner of the memory changes a gradient as soon as the
// program has announced it. This must not change what the program computes afterwards.
TEST(PlacedFetches, AreComputedInTheCallersMemory) {
  Tensor x(kF32, {8, 4});
  for (size_t i = 0; i < 32; ++i) x.data<float>()[i] = static_cast<float>(i % 7) / 7 - 0.4F;
  const std::array feeds{Feed::Of(x)};
  CompileOptions options;
  options.announced = {"gradient/w1", "gradient/b1", "gradient/w2", "gradient/b2"};
  for (const bool optimize : {true, false}) {
    options.optimize = optimize;
    options.placed.clear();
    variables::VariableStore store;
    const auto plain = MustCompile(Net(store), store, CpuDevice(), options);
    options.placed = options.announced;
    const auto program = MustCompile(Net(store), store, CpuDevice(), options);
    EXPECT_LT(program->unshared_bytes(), plain->unshared_bytes());
    EXPECT_NE(program->ToString().find("-> @gradient/w1 float32[4,6]"), std::string::npos)
        << program->ToString();
    ASSERT_TRUE(plain->Run(feeds).ok());
    for (int moves = 0; moves < 2; ++moves) {
      Places places(*program);
      EXPECT_EQ(places.count(), 4U);
      std::map<std::string, std::vector<float>> seen;
      const auto take = [&](int fetch) {
        const std::string& name = program->fetches()[static_cast<size_t>(fetch)].name;
        const std::span<float> values = places.Values(name);
        EXPECT_EQ(program->Fetch<float>(fetch).data(), values.data());
        seen[name].assign(values.begin(), values.end());
        std::ranges::fill(values, NAN);
      };
      ASSERT_EQ(program->Run(feeds, take), OkStatus());
      for (const std::string& name : options.announced)
        EXPECT_EQ(seen[name], Floats(*plain, name)) << name;
      places.ExpectGuards();
    }
  }
}

TEST(PlacedFetches, AreNotReadLaterOrSharedOrWithoutComputation) {
  Builder b;
  const Output x = Placeholder(b, "x", kF32, {4});
  const Output chain = Square(b, Tanh(b, x));
  b.AddFetch("chain", chain);
  b.AddFetch("later", Exp(b, Neg(b, chain)));
  const Output twin = Exp(b, x);
  b.AddFetch("twin1", twin);
  b.AddFetch("twin2", Reshape(b, twin, {2, 2}));
  b.AddFetch("constant", Scalar(b, kF32, 7));
  b.AddFetch("fed", Identity(b, Placeholder(b, "z", kF32, {4})));
  CompileOptions options;
  options.announced = {"chain", "later", "twin1", "twin2", "constant", "fed"};
  options.placed = options.announced;
  variables::VariableStore store;
  const auto program = MustCompile(std::move(b), store, CpuDevice(), options);
  std::set<std::string> placed;
  for (int fetch = 0; fetch < std::ssize(program->fetches()); ++fetch)
    if (program->Places(fetch)) placed.insert(program->fetches()[static_cast<size_t>(fetch)].name);
  EXPECT_EQ(placed, (std::set<std::string>{"later", "fed"}));
  const Tensor value = Tensor::Of<float>({4}, {0, 1, 2, 3});
  const std::array feeds{Feed::Of(value), Feed::Of(value)};
  EXPECT_EQ(program->Run(feeds), FailedPrecondition("fetch later has no memory: call Place first"));
  Places places(*program);
  ASSERT_EQ(program->Run(feeds), OkStatus());
  EXPECT_EQ(places.Values("fed")[3], 3);
  EXPECT_FLOAT_EQ(places.Values("later")[1], std::exp(-std::pow(std::tanh(1.0F), 2.0F)));
  EXPECT_EQ(Floats(*program, "twin1"), Floats(*program, "twin2"));
}

TEST(PlacedFetches, AreCopiedOnADeviceThatIsNotImmediate) {
  Builder b;
  b.AddFetch("y", Exp(b, Placeholder(b, "x", kF32, {2})));
  CompileOptions options;
  options.announced = options.placed = {"y"};
  variables::VariableStore store;
  const auto program = MustCompile(std::move(b), store, FakeDevice(1), options);
  EXPECT_FALSE(program->Places(0));
  const Tensor value = Tensor::Of<float>({2}, {0, 0});
  ASSERT_EQ(program->Run(std::array{Feed::Of(value)}), OkStatus());
  EXPECT_EQ(Floats(*program, "y"), (std::vector<float>{1, 1}));
}

}  // namespace
}  // namespace tfjob::exec
