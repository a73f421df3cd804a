// Checks that the CRD and the manifest parser accept and reject the same manifests: the operator
// can read every manifest that kubectl can create, and `tfjob validate` rejects every manifest that
// the API server rejects. The exceptions are the cases with "parser": false in refused.json, which
// only the server rejects.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "operator/crd/crd.h"
#include "operator/crd/structural.h"
#include "operator/manifest/manifest.h"
#include "runtime/base/file.h"

namespace tfjob {
namespace {

constexpr char kFolder[] = "tests/cluster/crd/";

Json Schema() {
  return crd::CustomResourceDefinition()["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
}

void ExpectAccepted(const std::string& path) {
  SCOPED_TRACE(path);
  const StatusOr<std::string> text = ReadFile(path);
  ASSERT_TRUE(text.ok()) << text.status();
  const manifest::ManifestReport report = manifest::CheckManifest(*text, path);
  EXPECT_TRUE(report.ok()) << manifest::Print(report, path);
  for (const manifest::ManifestObject& object : report.objects) {
    if (!object.job) continue;
    EXPECT_EQ(crd::SchemaErrors(Schema(), *object.object), std::vector<std::string>());
  }
}

TEST(Door, AcceptsWhatTheReferenceAccepts) {
  int files = 0;
  for (const std::string folder :
       {"tests/cluster/crd/accepted/", "deploy/examples/", "deploy/examples/models/"}) {
    const auto names = ListDirectory(folder);
    ASSERT_TRUE(names.ok()) << names.status();
    for (const std::string& name : *names) {
      if (!name.ends_with(".yaml")) continue;  // skip folders
      ExpectAccepted(folder + name);
      ++files;
    }
  }
  EXPECT_GT(files, 9);
}

TEST(Door, OurParserRefusesWhatTheServerRefuses) {
  const Json cases = *ParseJson(*ReadFile(std::string(kFolder) + "refused.json"), "refused.json");
  ASSERT_GT(cases["cases"].size(), 25u);
  for (const Json& refused : cases["cases"]) {
    Json job = cases["base"];
    job.merge_patch(refused["patch"]);
    const manifest::ManifestReport report = manifest::CheckManifest(PrintJson(job), "a case");
    EXPECT_EQ(report.ok(), !refused.value("parser", true)) << refused["what"];
  }
}

}  // namespace
}  // namespace tfjob
