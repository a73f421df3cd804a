#include "runtime/selftest/selftest.h"

#include <algorithm>
#include <optional>

#include "absl/strings/str_join.h"
#include "runtime/exec/cuda_device.h"
#include "runtime/kernels/cuda/checks/cases.h"
#include "runtime/selftest/example_models.h"
#include "runtime/selftest/kernel_check.h"
#include "runtime/selftest/model_check.h"
#include "runtime/selftest/run_process.h"

namespace tfjob::selftest {
namespace {

constexpr std::string_view kCuda = "cuda", kSpeedFamily = "speed";
// The longest time that a family may take. All families together usually take much less.
constexpr int kFamilySeconds = 300;

// Prints why there is no device, and returns the exit code.
int WithoutDevice(const Status& status, std::ostream& out) {
  out << "no device: " << Message(status) << "\n";
  return kNoDeviceCode;
}

int RunFamilyHere(std::string_view family, std::ostream& out) {
  const StatusOr<exec::Device> device = exec::CudaDevice();
  if (!device.ok()) return WithoutDevice(device.status(), out);
  std::vector<Finding> findings;
  const auto report = [&](const Finding& finding) {
    out << TableRow(finding) << std::flush;
    findings.push_back(finding);
  };
  const Status ran = RunFamily(family, *device, {}, report);
  if (!ran.ok()) report({std::string(family), "", Verdict::kWrong, std::string(Message(ran))});
  return ExitCodeOf(findings);
}

Verdict VerdictOf(const StatusOr<int>& code) {
  if (code.ok() && *code == kRightCode) return Verdict::kRight;
  return code.ok() && *code == kSlowCode ? Verdict::kSlow : Verdict::kWrong;
}

// Returns what the family's own rows do not say, or "".
std::string ProblemOf(const StatusOr<int>& code) {
  if (!code.ok()) return std::string(Message(code.status()));
  if (*code == kNoDeviceCode) return "the GPU is lost: earlier families have used it";
  if (*code == kRightCode || *code == kSlowCode || *code == kWrongCode) return "";
  return StrCat("the process exited with code ", *code);
}

int RunAllFamilies(std::ostream& out) {
  const StatusOr<std::string> gpu = exec::FindCudaDevice();
  if (!gpu.ok()) return WithoutDevice(gpu.status(), out);
  out << *gpu << "\n";
  const auto run = [](const std::string& family) {
    return RunProcess({"/proc/self/exe", StrCat("--selftest=", kCuda, "/", family)},
                      {.seconds = kFamilySeconds});
  };
  return RunAll(run, out);
}

}  // namespace

int RunAll(const std::function<StatusOr<int>(const std::string& family)>& run, std::ostream& out) {
  out << TableHeader() << std::flush;
  Verdict worst = Verdict::kRight;
  const std::vector<std::string> families = Families();
  for (const std::string& family : families) {
    const StatusOr<int> code = run(family);
    if (code.ok() && *code == kNoDeviceCode && family == families[0]) return kNoDeviceCode;
    const std::string problem = ProblemOf(code);
    if (!problem.empty()) out << TableRow({family, "", Verdict::kWrong, problem}) << std::flush;
    worst = std::max(worst, VerdictOf(code));
    if (!absl::IsUnavailable(code.status())) continue;
    out << "The families after " << family << " were not run.\n";
    break;
  }
  constexpr const char* kSummaries[] = {"right and fast", "right, but slow", "wrong"};
  out << "The GPU's results are " << kSummaries[static_cast<int>(worst)] << ".\n";
  return ExitCodeOf(worst);
}

std::vector<std::string> Families() {
  std::vector<std::string> families;
  for (const kernels::cuda::CaseFamily& family : kernels::cuda::CaseFamilies())
    families.emplace_back(family.name);
  for (const ExampleModel& example : ExampleModels()) families.emplace_back(example.name);
  families.emplace_back(kSpeedFamily);
  return families;
}

Status RunFamily(std::string_view family, const exec::Device& device, const Effort& effort,
                 const std::function<void(const Finding&)>& report) {
  for (const kernels::cuda::CaseFamily& cases : kernels::cuda::CaseFamilies()) {
    if (family != cases.name) continue;
    report(CheckFamily(cases, effort.seeds, device));
    return OkStatus();
  }
  for (const ExampleModel& example : ExampleModels()) {
    if (family != example.name) continue;
    report(CheckModel(example, device, effort.steps));
    return OkStatus();
  }
  if (family != kSpeedFamily)
    return NotFound("no family ", family, "; there are ", absl::StrJoin(Families(), ", "));
  for (const Finding& finding : CheckSpeed(device, effort.speed)) report(finding);
  return OkStatus();
}

StatusOr<int> RunSelfTest(std::string_view name, std::ostream& out) {
  if (name == kCuda) return RunAllFamilies(out);
  const std::string prefix = StrCat(kCuda, "/");
  const std::vector<std::string> families = Families();
  if (name.starts_with(prefix)) {
    const std::string_view family = name.substr(prefix.size());
    if (std::ranges::find(families, family) != families.end()) return RunFamilyHere(family, out);
  }
  return InvalidArgument("expected cuda, or one family such as cuda/", families[0], ", got ", name,
                         "; the families are ", absl::StrJoin(families, ", "));
}

}  // namespace tfjob::selftest
