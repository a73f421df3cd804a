#include "operator/crd/crd.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "operator/crd/rules.h"
#include "operator/crd/structural.h"
#include "runtime/base/file.h"
#include "runtime/base/yaml.h"

namespace tfjob::crd {
namespace {

constexpr size_t kMaxSize = 60'000;  // kubectl apply keeps the whole object in an annotation
constexpr char kHowTo[] = "stale; bazel run //operator/crd:write -- $PWD";

Json Version() {
  return CustomResourceDefinition()["spec"]["versions"][0];
}

Json Schema() {
  return Version()["schema"]["openAPIV3Schema"];
}

TEST(CustomResourceDefinition, FilesAreWhatTheTableSays) {
  EXPECT_EQ(*ReadFile("crds/kubeflow.org_tfjobs.yaml"), CrdYaml()) << kHowTo;
  EXPECT_EQ(*ReadFile("charts/tfjob-operator/files/kubeflow.org_tfjobs.yaml"), CrdYaml()) << kHowTo;
  EXPECT_EQ(*ReadFile("docs/api.md"), ApiReference()) << kHowTo;
}

TEST(CustomResourceDefinition, TheFileReadsAsTheObject) {
  const auto documents = ParseYaml(CrdYaml(), "the definition");
  ASSERT_TRUE(documents.ok()) << documents.status();
  ASSERT_EQ(documents->size(), 1u);
  EXPECT_EQ(documents->front(), CustomResourceDefinition());
}

TEST(CustomResourceDefinition, IsSmall) {
  EXPECT_LE(CrdYaml().size(), kMaxSize);
  EXPECT_LE(PrintJson(CustomResourceDefinition()).size(), kMaxSize);
}

TEST(CustomResourceDefinition, IsStructural) {
  EXPECT_EQ(StructuralErrors(Schema()), std::vector<std::string>());
}

TEST(CustomResourceDefinition, EveryRuleHasAPlace) {
  const std::string text = PrintJson(Schema());
  for (const Rule& rule : Rules()) {
    EXPECT_NE(text.find(PrintJson(Json(rule.expression))), std::string::npos) << rule.message;
  }
}

TEST(CustomResourceDefinition, StateIsTheFirstColumnAndAgeTheLastOfTheNarrow) {
  std::string names;
  const Json columns = Version()["additionalPrinterColumns"];
  for (const Json& column : columns) {
    if (column.value("priority", 0) == 0) names += column.value("name", "") + " ";
  }
  EXPECT_EQ(names, "State Ready Restarts Age ");
}

TEST(CustomResourceDefinition, EveryFieldIsExplained) {
  const Json spec = Schema()["properties"]["spec"]["properties"];
  EXPECT_GT(spec["tfReplicaSpecs"].value("description", "").size(), 40u);
  EXPECT_EQ(Schema()["properties"]["metadata"], Json({{"type", "object"}}));
  std::vector<Json> objects = {Schema()};
  while (!objects.empty()) {
    const Json object = objects.back();
    objects.pop_back();
    const Json members = object.value("properties", Json::object());
    for (const auto& [name, member] : members.items()) {
      EXPECT_TRUE(name == "metadata" || !member.value("description", "").empty()) << name;
      if (name != "template") objects.push_back(member);
    }
    for (const char* below : {"items", "additionalProperties"}) {
      if (object.contains(below)) objects.push_back(object[below]);
    }
  }
}

// Tests the checker itself.
TEST(StructuralErrors, NamesWhatAServerWouldRefuse) {
  const auto errors_with = [](const char* pointer, const Json& value) {
    Json schema = Schema();
    schema[Json::json_pointer(pointer)] = value;
    return StructuralErrors(schema);
  };
  EXPECT_EQ(errors_with("/properties/metadata/description", "x").size(), 1u);
  EXPECT_EQ(errors_with("/properties/spec/x-strange", 1).size(), 1u);
  EXPECT_EQ(errors_with("/properties/spec/required/0", "nothing").size(), 1u);
  EXPECT_EQ(errors_with("/properties/spec/properties/successPolicy/enum/0", 7).size(), 1u);
  EXPECT_EQ(errors_with("/properties/spec/properties/successPolicy", Json::object()).size(), 1u);
  EXPECT_EQ(errors_with("/properties/spec/x-kubernetes-validations/0/fieldPath", ".no").size(), 1u);
  Json unbounded = Schema();
  unbounded["properties"]["spec"]["properties"]["tfReplicaSpecs"].erase("maxProperties");
  EXPECT_EQ(StructuralErrors(unbounded).size(), 2u);  // those of replica specs and of containers
}

}  // namespace
}  // namespace tfjob::crd
