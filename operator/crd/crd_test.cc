#include "operator/crd/crd.h"

#include <gtest/gtest.h>

#include <iterator>
#include <map>
#include <nlohmann/json.hpp>

#include "operator/crd/rules.h"
#include "operator/crd/structural.h"
#include "runtime/base/file.h"
#include "runtime/base/yaml.h"

namespace tfjob::crd {
namespace {

constexpr size_t kMaxSize = 60'000;  // kubectl apply stores the whole object in an annotation
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

TEST(CustomResourceDefinition, EachRuleIsAtItsPlaceWithItsMessage) {
  const std::string specs = "/properties/spec/properties/tfReplicaSpecs";
  const std::string type = specs + "/additionalProperties";
  const std::string policy = "/properties/spec/properties/runPolicy/properties";
  const struct {
    std::string pointer;
    std::string field;
    std::string reason;   // without "FieldValue"; "" for Invalid
    std::string message;  // the beginning of the message
    std::string rule;     // a part of the expression
  } cases[] = {
      {"", ".spec", "Required", "expected an object, but it is missing", "has(self.spec)"},
      {"", "", "", "metadata.name: expected at most 63 lower-case", "{0,61}[a-z0-9])?$"},
      {"", "", "", "metadata.name: the services of this job", "61 - size(t) - size(string("},
      {specs, "", "Required", "at least one replica type is required", "size(self) > 0"},
      {specs, "", "", "unknown replica type", "['chief', 'evaluator', 'master', 'ps', 'worker']"},
      {specs, "", "", "keys differ only in case; keep one", "u.lowerAscii() == t.lowerAscii()"},
      {specs, "", "Forbidden", "Chief and Master exclude each other", "t.lowerAscii() == 'master'"},
      {specs, "", "", "expected at most 100000 replicas in total", ".sum() <= 100000"},
      {type, ".template.spec.containers", "Required", "at least one container", ") > 0"},
      {type, ".template.spec.containers", "Required", "one of the containers must be named",
       "c.name == 'tensorflow'"},
      {type + "/properties/template/properties/spec/properties/containers/items", ".image",
       "Required", "an image is required", "self.image != ''"},
      {"/properties/spec", ".runPolicy.managedBy", "", "spec.runPolicy.managedBy is immutable",
       "oldSelf.runPolicy.managedBy : '')"},
      {policy + "/schedulingPolicy/properties/queue", "", "",
       "spec.runPolicy.schedulingPolicy.queue is immutable", "self == oldSelf"},
  };
  EXPECT_EQ(std::size(cases), Rules().size());
  const Json schema = Schema();
  std::map<std::string, size_t> next;  // index of the next rule, by pointer
  for (const auto& each : cases) {
    SCOPED_TRACE(each.message);
    const Json& place = schema.at(Json::json_pointer(each.pointer));
    const Json& rules = place.at("x-kubernetes-validations");
    ASSERT_LT(next[each.pointer], rules.size());
    const Json& rule = rules[next[each.pointer]++];
    EXPECT_EQ(rule.value("message", "").substr(0, each.message.size()), each.message);
    EXPECT_EQ(rule.value("fieldPath", ""), each.field);
    EXPECT_EQ(rule.value("reason", ""), each.reason.empty() ? "" : "FieldValue" + each.reason);
    EXPECT_NE(rule.value("rule", "").find(each.rule), std::string::npos) << rule;
    // The status of an object that was stored before these rules existed must stay writable.
    EXPECT_EQ(rule.value("optionalOldSelf", false), each.pointer.empty());
  }
}

// NAME-TYPE-INDEX may have at most 63 characters. The message must be able to state every possible
// maximum length of NAME.
TEST(CustomResourceDefinition, TheMessageOnLongNamesKnowsEveryLength) {
  const Json rules = Schema()["x-kubernetes-validations"];
  const std::string message = rules.at(2).value("messageExpression", "");
  const size_t most = 63 - std::string("-ps-0").size();
  const size_t least = 63 - std::string("-evaluator-99999").size();
  std::string lengths;
  for (size_t n = least; n <= most; ++n) lengths += StrCat(lengths.empty() ? "'" : ", '", n, "'");
  EXPECT_NE(message.find(StrCat("[", lengths, "]")), std::string::npos) << message;
  EXPECT_NE(message.find(StrCat(" - ", least, "]")), std::string::npos) << message;
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

// Tests the checker StructuralErrors itself.
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
  // The schema yields one error for the replica specs and one for the containers.
  EXPECT_EQ(StructuralErrors(unbounded).size(), 2u);
}

}  // namespace
}  // namespace tfjob::crd
