// Checks that the parts of the chart are consistent with each other and with the documentation.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "runtime/base/file.h"
#include "runtime/base/yaml.h"

namespace tfjob {
namespace {

constexpr char kChart[] = "charts/tfjob-operator/";

std::string Text(const std::string& path) {
  const StatusOr<std::string> text = ReadFile(path);
  EXPECT_TRUE(text.ok()) << text.status();
  return text.value_or("");
}

Json Yaml(const std::string& path) {
  const auto documents = ParseYaml(Text(path), path);
  EXPECT_TRUE(documents.ok()) << documents.status();
  return documents.ok() ? documents->front() : Json();
}

bool IsSection(const Json& schema) {
  return schema.value("type", Json()) == "object" && schema.contains("properties");
}

std::set<std::string> Matches(const std::string& text, const char* pattern) {
  const std::regex regex(pattern);
  std::set<std::string> found;
  for (std::sregex_iterator at(text.begin(), text.end(), regex), end; at != end; ++at) {
    found.insert((*at)[1].str());
  }
  return found;
}

// Checks that the values and their schema have the same members, section by section.
void CompareSection(const Json& schema, const Json& values, const std::string& path) {
  EXPECT_EQ(schema.value("additionalProperties", Json()), Json(false)) << path;
  for (const auto& [name, member] : schema["properties"].items()) {
    if (path.empty() && name == "global") continue;  // Helm itself uses it
    EXPECT_TRUE(values.contains(name)) << path << name << " has no default";
  }
  for (const auto& [name, value] : values.items()) {
    const auto member = schema["properties"].find(name);
    ASSERT_NE(member, schema["properties"].end()) << path << name << " is not in the schema";
    if (IsSection(*member)) CompareSection(*member, value, path + name + ".");
  }
}

void CollectValues(const Json& schema, const std::string& path, std::vector<std::string>& names) {
  for (const auto& [name, member] : schema["properties"].items()) {
    if (IsSection(member)) {
      CollectValues(member, path + name + ".", names);
    } else if (name != "global") {
      names.push_back(path + name);
    }
  }
}

TEST(Chart, EveryValueHasASchemaAndADefault) {
  const Json schema = *ParseJson(Text(std::string(kChart) + "values.schema.json"), "the schema");
  CompareSection(schema, Yaml(std::string(kChart) + "values.yaml"), "");
}

TEST(Chart, EveryValueIsExplained) {
  const Json schema = *ParseJson(Text(std::string(kChart) + "values.schema.json"), "the schema");
  const std::string page = Text("docs/installing.md");
  std::vector<std::string> names;
  CollectValues(schema, "", names);
  ASSERT_GT(names.size(), 40u);
  for (const std::string& name : names) {
    const std::string last = name.substr(name.rfind('.') + 1);
    EXPECT_TRUE(page.find(StrCat("`", name, "`")) != std::string::npos ||
                page.find(StrCat("`.", last, "`")) != std::string::npos)
        << "docs/installing.md says nothing of " << name;
  }
}

TEST(Chart, EveryFlagOfTheDeploymentIsExplained) {
  const std::string deployment = Text(std::string(kChart) + "templates/deployment.yaml");
  const std::string page = Text("docs/operator.md");
  const std::set<std::string> flags = Matches(deployment, "- (--[a-z-]+)");
  ASSERT_GT(flags.size(), 10u);
  for (const std::string& flag : flags) {
    EXPECT_NE(page.find(StrCat("`", flag, "`")), std::string::npos) << flag;
  }
}

TEST(Chart, PageAndProgramKnowTheSameFlags) {
  std::set<std::string> flags =
      Matches(Text("operator/service/flags.cc"), "add_(?:option|flag)\\(\"(--[a-z-]+)\"");
  ASSERT_GT(flags.size(), 15u);
  flags.insert({"--help", "--version"});
  const std::string page = Text("docs/operator.md");
  std::set<std::string> explained = Matches(page, "(?:\n\\| |, )`(--[a-z-]+)`");
  for (const std::string& flag : flags) EXPECT_TRUE(explained.contains(flag)) << flag;
  for (const std::string& flag : explained) EXPECT_TRUE(flags.contains(flag)) << flag;
}

TEST(Chart, InstallsTheVersionOfThisTree) {
  const std::set<std::string> version =
      Matches(Text("runtime/base/version.h"), "kVersion\\[\\] = \"([^\"]*)\"");
  ASSERT_EQ(version.size(), 1u);
  EXPECT_EQ(Yaml(std::string(kChart) + "Chart.yaml").value("appVersion", ""), *version.begin());
}

TEST(Chart, WritesNoWildcardAndNoSecretIntoItsRoles) {
  for (const char* file : {"templates/_helpers.tpl", "templates/rbac/operator.yaml"}) {
    const std::string text = Text(std::string(kChart) + file);
    EXPECT_EQ(text.find("\"*\""), std::string::npos) << file;
    EXPECT_EQ(text.find("secrets"), std::string::npos) << file;
  }
}

}  // namespace
}  // namespace tfjob
