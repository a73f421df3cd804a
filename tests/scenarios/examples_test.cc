#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "operator/local/run/workload.h"
#include "runtime/base/file.h"
#include "runtime/config/training_config.h"

namespace tfjob::local {
namespace {

constexpr const char* kFolders[] = {"deploy/examples/", "deploy/examples/models/"};

void CheckExample(const std::string& folder, const std::string& file) {
  process::RunnerOptions options;
  options.images = {{"tfjob/trainer", "/bin/true"}};
  options.claims_dir = "/claims";
  const auto text = ReadFile(folder + file);
  ASSERT_TRUE(text.ok()) << text.status();
  const auto workload = MakeWorkload(manifest::CheckManifest(*text, file), options, file);
  ASSERT_TRUE(workload.ok()) << workload.status();
  EXPECT_TRUE(workload->warnings.empty()) << workload->warnings[0];
  ASSERT_EQ(workload->jobs.size(), 1u);
  const std::string name = workload->jobs[0].job.metadata.name;
  EXPECT_EQ(file, name + ".yaml");
  EXPECT_EQ(workload->jobs[0].model_dir, StrCat("/claims/default/", name, "-model"));
  ASSERT_EQ(workload->config_maps.size(), 1u);
  const auto training = JsonField(*workload->config_maps[0])["data"]["training.yaml"].String();
  ASSERT_TRUE(training.ok()) << training.status();
  const auto config = config::ParseTrainingConfig(*training, file);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_TRUE(config::Validate(*config).ok()) << config::Validate(*config);
}

TEST(ExamplesTest, HoldATrainingFileThatTheTrainerTakes) {
  for (const std::string folder : kFolders) {
    const auto files = ListDirectory(folder);
    ASSERT_TRUE(files.ok()) << files.status();
    for (const std::string& file : *files) {
      SCOPED_TRACE(folder + file);
      if (file.ends_with(".yaml")) CheckExample(folder, file);
    }
  }
}

}  // namespace
}  // namespace tfjob::local
