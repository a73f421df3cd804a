// Compares the table of fields with the structs, the reader and the printer. Fails if a field is
// missing from any of them.
#include "operator/api/schema.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "operator/api/tfjob.h"
#include "operator/manifest/tfjob_json.h"

namespace tfjob::api {
namespace {

// Converts to any type. CountMembers finds the number of members of an aggregate by trying how many
// such values can initialise it.
struct Anything {
  template <typename T>
  operator T() const;
};
template <typename T, typename... Values>
constexpr size_t CountMembers(Values... values) {
  if constexpr (requires { T{values..., Anything()}; }) {
    return CountMembers<T>(values..., Anything());
  } else {
    return sizeof...(Values);
  }
}

TEST(TFJobSchema, HasEveryMemberOfTheStructs) {
  const auto fields = [](const char* path) { return SchemaMembers(path).size(); };
  EXPECT_EQ(fields("spec"), CountMembers<TFJobSpec>());
  EXPECT_EQ(fields("spec.runPolicy"), CountMembers<RunPolicy>());
  EXPECT_EQ(fields("spec.runPolicy.schedulingPolicy"), CountMembers<SchedulingPolicy>());
  EXPECT_EQ(fields("spec.tfReplicaSpecs"), CountMembers<ReplicaSpec>());
  // status.conditions is read into two members, conditions and foreign_conditions.
  EXPECT_EQ(fields("status") + 1, CountMembers<TFJobStatus>());
  EXPECT_EQ(fields("status.conditions"), CountMembers<Condition>());
  EXPECT_EQ(fields("status.replicaStatuses"), CountMembers<ReplicaStatus>());
}

// Returns a value that differs from the default, so that it is printed.
Json SampleOf(const Field& field);

Json SampleObject(const Field& field) {
  Json object = Json::object();
  for (const Field& member : field.fields) object[member.name] = SampleOf(member);
  return object;
}

Json SampleOf(const Field& field) {
  switch (field.type) {
    case FieldType::kString:
      if (field.name == "type") return "Running";
      if (field.name == "completedIndexes") return "0-3,7";
      return field.words.empty() ? "x"
                                 : field.words[field.words.size() > 2 ? 1 : field.words.size() - 1];
    case FieldType::kInt32:
    case FieldType::kInt64:
      return 7;
    case FieldType::kBool:
      return true;
    case FieldType::kTime:
      return "2026-11-21T09:30:00Z";
    case FieldType::kQuantities:
      return {{"cpu", "4"}};
    case FieldType::kStrings:
      return Json::array({"x"});
    case FieldType::kObject:
      return SampleObject(field);
    case FieldType::kObjects:
      return Json::array({SampleObject(field)});
    case FieldType::kObjectMap:
      return {{"Worker", SampleObject(field)}};
    case FieldType::kPodTemplate:
      return {{"spec", {{"anything", 1}}}};
    case FieldType::kMetadata:
      return {{"name", "mnist"}};
  }
  return {};
}

TEST(TFJobSchema, EveryFieldIsReadAndPrinted) {
  Json job = SampleObject(TFJobSchema());
  job["apiVersion"] = kApiVersion;
  job["kind"] = kKind;
  std::vector<FieldIssue> warnings;
  const auto read = manifest::ParseTFJob(job, &warnings);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(warnings.empty()) << ToString(warnings.front());
  EXPECT_EQ(manifest::ToJson(*read), job);
}

TEST(TFJobSchema, WordsAreThoseThatAreParsed) {
  for (const std::string& word : SchemaField("spec.tfReplicaSpecs.restartPolicy").words) {
    EXPECT_TRUE(word.empty() || ParseRestartPolicy(word)) << word;
  }
  for (const std::string& word : SchemaField("spec.runPolicy.cleanPodPolicy").words) {
    EXPECT_TRUE(word.empty() || ParseCleanPodPolicy(word)) << word;
  }
  for (const std::string& word : SchemaField("spec.runPolicy.restartScope").words) {
    EXPECT_TRUE(ParseRestartScope(word)) << word;
  }
  for (const std::string& word : SchemaField("spec.successPolicy").words) {
    EXPECT_TRUE(ParseSuccessPolicy(word)) << word;
  }
}

TEST(TFJobSchema, FieldsAreFoundByTheirPath) {
  EXPECT_EQ(SchemaField("").name, "TFJob");
  EXPECT_EQ(SchemaField("spec.tfReplicaSpecs.replicas").minimum, 0);
  EXPECT_EQ(SchemaMembers("status.replicaStatuses").front(), "active");
}

}  // namespace
}  // namespace tfjob::api
