#include "runtime/selftest/finding.h"

#include <algorithm>

#include "absl/strings/str_format.h"

namespace tfjob::selftest {
namespace {

constexpr char kFormat[] = "%-18s %-34s %-6s %s\n";

const char* NameOf(Verdict verdict) {
  switch (verdict) {
    case Verdict::kRight:
      return "right";
    case Verdict::kSlow:
      return "SLOW";
    case Verdict::kWrong:
      return "WRONG";
  }
  return "";
}

}  // namespace

std::string TableHeader() {
  return absl::StrFormat(kFormat, "family", "check", "result", "");
}

std::string TableRow(const Finding& finding) {
  return absl::StrFormat(kFormat, finding.family, finding.check, NameOf(finding.verdict),
                         finding.detail);
}

int ExitCodeOf(Verdict verdict) {
  constexpr int kCodes[] = {kRightCode, kSlowCode, kWrongCode};
  return kCodes[static_cast<int>(verdict)];
}

int ExitCodeOf(std::span<const Finding> findings) {
  Verdict worst = Verdict::kRight;
  for (const Finding& finding : findings) worst = std::max(worst, finding.verdict);
  return ExitCodeOf(worst);
}

}  // namespace tfjob::selftest
