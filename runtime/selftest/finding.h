// Defines what a self-test reports.
#pragma once

#include <span>
#include <string>
#include <vector>

namespace tfjob::selftest {

enum class Verdict { kRight, kSlow, kWrong };

// The exit codes of the program. kSlowCode differs from the trainer's code for wrong flags, 2.
inline constexpr int kRightCode = 0, kWrongCode = 1, kSlowCode = 3, kNoDeviceCode = 77;

// The result of one check.
struct Finding {
  std::string family;  // "softmax"
  std::string check;   // "120 comparisons"
  Verdict verdict = Verdict::kRight;
  std::string detail;  // what is wrong, or what was measured
};

// Return the header line of the table, and the line for a finding. Each ends with a newline.
std::string TableHeader();
std::string TableRow(const Finding& finding);

int ExitCodeOf(Verdict verdict);
// Returns the exit code for the worst verdict of the findings.
int ExitCodeOf(std::span<const Finding> findings);

}  // namespace tfjob::selftest
