// Compares the output of `tfjob explain` with the golden files next to this test. If
// TFJOB_UPDATE_GOLDEN is set, writes the files instead; see update.sh.
#include <gtest/gtest.h>

#include <set>
#include <sstream>

#include "operator/cli/explain.h"
#include "runtime/base/env.h"
#include "runtime/base/file.h"

namespace tfjob::cli {
namespace {

using Stage = ExplainOptions::Stage;
using Format = ExplainOptions::Format;

constexpr char kFolder[] = "tests/scenarios/";
constexpr char kExamples[] = "deploy/examples/";
constexpr std::pair<const char*, Stage> kStages[] = {{"defaults", Stage::kDefaults},
                                                     {"verdict", Stage::kVerdict},
                                                     {"objects", Stage::kObjects},
                                                     {"plan", Stage::kPlan}};

// The ids of the operator's keys in observed situations.
const std::vector<std::string> kKeyIds = {"1.aaaaaaaa", "2.bbbbbbbb"};

std::string ExplainText(const std::string& file, const std::string& observed,
                        const std::string& now, Stage stage, Format format,
                        const std::vector<std::string>& key_ids = {}) {
  std::istringstream in;
  std::ostringstream out, err;
  view::Console console{in, out, err, false};
  ExplainOptions options{file, stage, format, observed, ParseTime(now).value()};
  options.key_ids = key_ids;
  options.options.network_policies = policy::NetworkPolicies::kAnnotated;
  EXPECT_EQ(Explain(options, console), view::kSucceeded) << err.str();
  return out.str();
}

void Compare(const std::string& name, const std::string& text) {
  const std::string path = StrCat(kFolder, name, ".exp");
  if (GetEnv("TFJOB_UPDATE_GOLDEN")) {
    ASSERT_TRUE(WriteFileAtomically(path, text).ok()) << path;
    return;
  }
  const auto golden = ReadFile(path);
  ASSERT_TRUE(golden.ok()) << golden.status() << "; tests/scenarios/update.sh writes it";
  EXPECT_EQ(text, *golden) << path << " differs; when that is meant, run tests/scenarios/update.sh";
}

// Returns the names of the files in a folder that end in `ending`, without this ending.
std::vector<std::string> NamesWith(const std::string& folder, const std::string& ending) {
  std::vector<std::string> names;
  const auto files = ListDirectory(folder);
  EXPECT_TRUE(files.ok()) << files.status();
  for (const std::string& file : files.value_or(std::vector<std::string>())) {
    if (file.ends_with(ending)) names.push_back(file.substr(0, file.size() - ending.size()));
  }
  return names;
}

TEST(ScenariosTest, EveryStageOfEveryExample) {
  const auto names = NamesWith(kExamples, ".yaml");
  EXPECT_GE(names.size(), 5u);
  for (const std::string& name : names) {
    for (const auto& [stage, value] : kStages) {
      Compare(StrCat(name, ".", stage), ExplainText(StrCat(kExamples, name, ".yaml"), "",
                                                    "2026-01-01T00:00:00Z", value, Format::kYaml));
    }
  }
  Compare("local.objects.json",
          ExplainText(StrCat(kExamples, "local.yaml"), "", "2026-01-01T00:00:00Z", Stage::kObjects,
                      Format::kJson));
  Compare("local.objects.with-key",
          ExplainText(StrCat(kExamples, "local.yaml"), "", "2026-01-01T00:00:00Z", Stage::kObjects,
                      Format::kYaml, kKeyIds));
}

// <name>.yaml is a job with its status. <name>.observed.yaml lists the existing objects of the job.
// Both describe the situation ten minutes after the job was created.
TEST(ScenariosTest, VerdictAndPlanOfObservedSituations) {
  const auto names = NamesWith(kFolder, ".observed.yaml");
  EXPECT_GE(names.size(), 4u);
  for (const std::string& name : names) {
    const std::string file = StrCat(kFolder, name, ".yaml"),
                      observed = StrCat(kFolder, name, ".observed.yaml");
    for (const auto& [stage, value] : {kStages[1], kStages[3]}) {
      Compare(StrCat(name, ".", stage),
              ExplainText(file, observed, "2026-01-01T00:10:00Z", value, Format::kYaml, kKeyIds));
    }
  }
}

// Checks the objects of a job that requests a NetworkPolicy.
TEST(ScenariosTest, ObjectsOfAProtectedJob) {
  Compare("network-policy.objects",
          ExplainText(StrCat(kFolder, "network-policy.yaml"), "", "2026-01-01T00:00:00Z",
                      Stage::kObjects, Format::kYaml));
}

// Fails if a golden file belongs to no example or situation, because such a file would never be
// compared.
TEST(ScenariosTest, EveryGoldenFileBelongsToOne) {
  std::set<std::string> expected = {"local.objects.json", "local.objects.with-key",
                                    "network-policy.objects"};
  for (const std::string& name : NamesWith(kExamples, ".yaml")) {
    for (const auto& [stage, value] : kStages) expected.insert(StrCat(name, ".", stage));
  }
  for (const std::string& name : NamesWith(kFolder, ".observed.yaml")) {
    expected.insert({name + ".verdict", name + ".plan"});
  }
  for (const std::string& name : NamesWith(kFolder, ".exp")) {
    EXPECT_TRUE(expected.contains(name)) << name << ".exp belongs to no scenario: remove it";
  }
}

}  // namespace
}  // namespace tfjob::cli
