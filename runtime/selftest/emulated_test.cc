// Runs a small self-test on the emulated GPU. The families of the self-test must find mistakes that
// are planted in kernels.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "runtime/exec/emulated_cuda_device.h"
#include "runtime/kernels/stream.h"
#include "runtime/selftest/kernel_check.h"
#include "runtime/selftest/model_check.h"
#include "runtime/selftest/selftest.h"

namespace tfjob::selftest {
namespace {

using kernels::KernelRequest;
using kernels::KernelTable;
using testing::HasSubstr;

// Returns the effort for a test with few and small cases, because the emulator is slow. Its
// measured times are not real.
Effort SmallEffort() {
  Effort effort{.seeds = 1, .steps = 2, .speed = {}};
  effort.speed.elements = 4096;
  effort.speed.side = 16;
  effort.speed.repetitions = 1;
  return effort;
}

std::vector<Finding> FindingsOf(const std::string& family, const exec::Device& device) {
  std::vector<Finding> findings;
  EXPECT_EQ(RunFamily(family, device, SmallEffort(),
                      [&](const Finding& finding) { findings.push_back(finding); }),
            OkStatus());
  return findings;
}

// Returns the names of all families of kernels, of one model, and "speed". tests/numerics trains
// the other models.
std::vector<std::string> QuickFamilies() {
  std::vector<std::string> families;
  for (const auto& family : kernels::cuda::CaseFamilies()) families.emplace_back(family.name);
  families.insert(families.end(), {"neumf-small", "speed"});
  return families;
}

class EmulatedFamilies : public testing::TestWithParam<std::string> {};

TEST_P(EmulatedFamilies, AreRight) {
  const std::vector<Finding> findings =
      FindingsOf(GetParam(), exec::EmulatedCudaDevice(/*seed=*/3));
  EXPECT_FALSE(findings.empty());
  for (const Finding& finding : findings) {
    EXPECT_NE(finding.verdict, Verdict::kWrong) << TableRow(finding);
    EXPECT_EQ(finding.family, GetParam());
  }
}

INSTANTIATE_TEST_SUITE_P(, EmulatedFamilies, testing::ValuesIn(QuickFamilies()),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

// Calls change(outputs, stream) after each run of a kernel.
class ChangedKernel final : public kernels::Kernel {
 public:
  using Change = std::function<void(void* const* outputs, kernels::Stream& stream)>;
  ChangedKernel(std::unique_ptr<Kernel> kernel, Change change)
      : kernel_(std::move(kernel)), change_(std::move(change)) {}

  size_t workspace_bytes() const override { return kernel_->workspace_bytes(); }
  void Run(const void* const* inputs, void* const* outputs, void* workspace,
           kernels::Stream& stream) override {
    kernel_->Run(inputs, outputs, workspace, stream);
    change_(outputs, stream);
  }

 private:
  const std::unique_ptr<Kernel> kernel_;
  const Change change_;
};

// Returns the device with another kernel for an op.
exec::Device WithKernel(exec::Device device, const std::string& op,
                        const kernels::PrepareFunction& prepare) {
  KernelTable::Entries entries;
  entries[op] = {prepare, device.kernels->Find(op)->in_place};
  device.kernels = std::make_shared<const KernelTable>(
      device.kernels->With(KernelTable("CUDA", std::move(entries))));
  return device;
}

// Returns the device with a mistake planted in the kernel of an op.
exec::Device WithMistake(const exec::Device& device, const std::string& op,
                         const ChangedKernel::Change& change) {
  const auto prepare =
      [table = device.kernels,
       change](const KernelRequest& request) -> StatusOr<std::unique_ptr<kernels::Kernel>> {
    ASSIGN_OR_RETURN(auto kernel, table->Prepare(request));
    return std::make_unique<ChangedKernel>(std::move(kernel), change);
  };
  return WithKernel(device, op, prepare);
}

const kernels::cuda::Comparison kSquare{"Square", {}, {{Shape({40})}}, {{Shape({40})}}};

TEST(CheckKernel, FindsMistakes) {
  const exec::Device device = exec::EmulatedCudaDevice(/*seed=*/3);
  EXPECT_EQ(CheckKernel(kSquare, 1, device), OkStatus());
  const auto error = [&](const ChangedKernel::Change& change) {
    const exec::Device wrong = WithMistake(device, "Square", change);
    return std::string(Message(CheckKernel(kSquare, 1, wrong)));
  };
  // Copies an element, or a part of one, to a wrong place.
  const auto copy = [](int64_t from, int64_t to, size_t bytes) {
    return [=](void* const* outputs, kernels::Stream& stream) {
      auto* const y = static_cast<std::byte*>(outputs[0]);
      stream.Copy(y + to, y + from, bytes);
    };
  };
  EXPECT_THAT(error(copy(0, 16, 4)), HasSubstr("output 0 at byte 16: "));
  EXPECT_THAT(error(copy(0, -8, 4)), HasSubstr("output 0: wrote before its first element"));
  EXPECT_THAT(error(copy(0, 160, 4)), HasSubstr("output 0: wrote after its last element"));
}

// Changes the last bits of an element, in the second run.
TEST(CheckKernel, FindsRunsThatDiffer) {
  int runs = 0;
  const exec::Device device = WithMistake(exec::EmulatedCudaDevice(/*seed=*/3), "Square",
                                          [&runs](void* const* outputs, kernels::Stream& stream) {
                                            auto* const y = static_cast<std::byte*>(outputs[0]);
                                            if (++runs == 2) stream.Copy(y + 4, y + 8, 1);
                                          });
  kernels::cuda::Comparison rough = kSquare;
  rough.tolerance = 1e-3;
  EXPECT_THAT(std::string(Message(CheckKernel(rough, 1, device))), HasSubstr("two runs differ"));
}

TEST(CheckFamily, FindsAKernelThatMissesNumbersThatAreNotFinite) {
  const exec::Device device = exec::EmulatedCudaDevice(/*seed=*/3);
  const auto copy = [table = device.kernels](KernelRequest request) {
    request.op = "Identity";
    return table->Prepare(request);
  };
  const std::vector<Finding> findings =
      FindingsOf("numbers", WithKernel(device, "CheckNumerics", copy));
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].verdict, Verdict::kWrong);
  EXPECT_THAT(findings[0].detail,
              HasSubstr("OK instead of ABORTED: the input contains NaN or infinity"));
}

// Calls watch(outputs) instead of computing anything.
class IdleKernel final : public kernels::Kernel {
 public:
  using Watch = std::function<void(void* const* outputs)>;
  explicit IdleKernel(Watch watch) : watch_(std::move(watch)) {}

  size_t workspace_bytes() const override { return 0; }
  void Run(const void* const*, void* const* outputs, void*, kernels::Stream&) override {
    if (watch_) watch_(outputs);
  }

 private:
  const Watch watch_;
};

// The bytes of -1 are those of a NaN.
TEST(CheckKernel, FindsAnIntegerThatIsNotWritten) {
  const auto prepare = [](const KernelRequest&) -> StatusOr<std::unique_ptr<kernels::Kernel>> {
    return std::make_unique<IdleKernel>(nullptr);
  };
  const exec::Device idle = WithKernel(exec::EmulatedCudaDevice(/*seed=*/3), "Fill", prepare);
  for (const DType dtype : {DType::kInt64, DType::kInt32, DType::kFloat32}) {
    const kernels::cuda::Comparison minus{"Fill", {{"value", -1.0}}, {}, {{Shape({3}), dtype}}, 0};
    EXPECT_FALSE(CheckKernel(minus, 1, idle).ok()) << Name(dtype);
  }
}

// Some ops have separate kernels for operands that are not aligned.
TEST(CheckFamily, AlsoUsesUnalignedOperands) {
  int aligned = 0, unaligned = 0;
  const auto count = [&](void* const* outputs) {
    ++(reinterpret_cast<uintptr_t>(outputs[0]) % 16 == 0 ? aligned : unaligned);
  };
  const auto prepare = [&](const KernelRequest&) -> StatusOr<std::unique_ptr<kernels::Kernel>> {
    return std::make_unique<IdleKernel>(count);
  };
  const exec::Device device = WithKernel(exec::EmulatedCudaDevice(/*seed=*/3), "Square", prepare);
  for (uint64_t seed = 0; seed < 4; ++seed) CheckKernel(kSquare, seed, device).IgnoreError();
  EXPECT_EQ(aligned, 2);
  EXPECT_EQ(unaligned, 2);
  for (uint64_t seed = 0; seed < 4; ++seed)
    EXPECT_EQ(CheckKernel(kSquare, seed, exec::EmulatedCudaDevice(/*seed=*/3)), OkStatus());
}

TEST(CheckFamily, CountsTheMistakes) {
  const exec::Device device = WithMistake(exec::EmulatedCudaDevice(/*seed=*/3), "SoftmaxGrad",
                                          [](void* const* outputs, kernels::Stream& stream) {
                                            auto* const y = static_cast<std::byte*>(outputs[0]);
                                            stream.Copy(y + 2, y, 2);
                                          });
  const std::vector<Finding> findings = FindingsOf("softmax", device);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].verdict, Verdict::kWrong);
  EXPECT_THAT(findings[0].detail, HasSubstr("differ. The first: seed 0: SoftmaxGrad("));
}

TEST(CheckModel, FindsAWrongGradient) {
  // The planted mistake replaces a part of each gradient of a table.
  const exec::Device device =
      WithMistake(exec::EmulatedCudaDevice(/*seed=*/3), "DeduplicateIndexedSlices",
                  [](void* const* outputs, kernels::Stream& stream) {
                    auto* const y = static_cast<std::byte*>(outputs[1]);
                    stream.Copy(y + 8, y, 8);
                  });
  const std::vector<Finding> findings = FindingsOf("neumf-small", device);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].verdict, Verdict::kWrong) << findings[0].detail;
}

TEST(CompareTrained, FindsDifferences) {
  const Trained right{{2, 1}, {3, 4}, {{"w", {0.5F, -0.5F}}}};
  EXPECT_EQ(CompareTrained(right, right, {}), OkStatus());
  const auto message = [&](const std::function<void(Trained&)>& change) {
    Trained wrong = right;
    change(wrong);
    return std::string(Message(CompareTrained(wrong, right, {})));
  };
  EXPECT_EQ(message([](Trained& t) { t.losses[1] = 1.001F; }),
            "step 1: a loss of 1.001 instead of 1");
  EXPECT_EQ(message([](Trained& t) { t.losses.pop_back(); }), "1 steps instead of 2");
  EXPECT_EQ(message([](Trained& t) { t.hits[0] = 2; }), "step 0: 2 hits instead of 3");
  EXPECT_EQ(message([](Trained& t) { t.changes["w"][0] = 0.502F; }),
            "w changes by 0.5, and differs by 0.0014142");
  EXPECT_EQ(message([](Trained& t) { t.changes.clear(); }), "there is no variable w");
  Trained later = right;
  later.losses = {2, 1, 0.5F, 0.25F};
  later.hits = {3, 4, 5, 6};
  Trained close = later;
  close.hits[3] = 5;
  EXPECT_EQ(CompareTrained(close, later, {}), OkStatus());
  close.hits[2] = 4;
  EXPECT_EQ(Message(CompareTrained(close, later, {})), "step 2: 4 hits instead of 5");
  const Trained still{{1}, {1}, {{"w", {1e-7F, 0}}}};
  EXPECT_THAT(std::string(Message(CompareTrained(still, still, {}))),
              HasSubstr("w changes only by "));
}

// Like a training file with the default on_non_finite.
TEST(ExampleModels, OneChecksItsNumbers) {
  const auto with_checks = [](const ExampleModel& example) {
    const auto model = ReadExampleModel(example.name);
    EXPECT_TRUE(model.ok()) << model.status();
    const auto built = BuildExampleModel(example, *model);
    EXPECT_TRUE(built.ok()) << built.status();
    return std::ranges::any_of(built->graph.nodes(),
                               [](const auto& node) { return node.op == "CheckNumerics"; });
  };
  EXPECT_EQ(std::ranges::count_if(ExampleModels(), with_checks), 1);
}

TEST(ExampleModels, AreThoseOfTheExamples) {
  for (const ExampleModel& example : ExampleModels()) {
    const auto model = ReadExampleModel(example.name);
    ASSERT_TRUE(model.ok()) << example.name << ": " << model.status();
    EXPECT_TRUE(BuildExampleModel(example, *model).ok()) << example.name;
  }
  EXPECT_EQ(ReadExampleModel("none").status(), NotFound("no example model none"));
}

}  // namespace
}  // namespace tfjob::selftest
