#include "runtime/config/schema.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "runtime/base/file.h"
#include "runtime/config/keys.h"

namespace tfjob::config {
namespace {

constexpr char kWrite[] = "regenerate it: bazel run //runtime/config:write_docs -- $PWD/docs";

bool IsKey(const std::string& path) {
  return std::ranges::find(Keys(), path, &Key::path) != Keys().end();
}

// Collects the paths of all keys in the schema, but not those of sections. The schema of a key may
// itself have properties.
void Collect(const Json& schema, const std::string& path, std::set<std::string>& paths) {
  const Json* at = &schema;
  if (at->contains("anyOf") && (*at)["anyOf"].back().contains("properties"))
    at = &(*at)["anyOf"].back();
  if (!at->contains("properties") || IsKey(path)) {
    paths.insert(path);
    return;
  }
  EXPECT_EQ((*at)["additionalProperties"], false) << path;
  for (const auto& [name, below] : (*at)["properties"].items()) {
    Collect(below, path.empty() ? name : path + "." + name, paths);
  }
}

TEST(TrainingSchema, TheFileHasExactlyTheKeysOfTheParser) {
  const StatusOr<std::string> text = ReadFile("docs/training.schema.json");
  ASSERT_TRUE(text.ok()) << text.status();
  const StatusOr<Json> schema = ParseJson(*text, "docs/training.schema.json");
  ASSERT_TRUE(schema.ok()) << schema.status();
  std::set<std::string> in_schema, in_parser;
  Collect(*schema, "", in_schema);
  for (const Key& key : Keys()) in_parser.insert(key.path);
  EXPECT_EQ(in_schema, in_parser) << kWrite;
  EXPECT_EQ(*schema, TrainingSchema()) << kWrite;
}

TEST(TrainingSchema, DefaultsSatisfyTypesAndChoices) {
  for (const Key& key : Keys()) {
    EXPECT_FALSE(key.doc.empty()) << key.path;
    const Json value = GetKey(TrainingConfig(), key);
    if (value.is_null()) {
      EXPECT_FALSE(key.unset_doc.empty()) << key.path << ": say what happens without it";
      continue;
    }
    TrainingConfig config;
    const Status status = SetKey(config, key, JsonField(value, key.path));
    EXPECT_TRUE(status.ok() || key.type == KeyType::kMetrics) << status;
  }
}

TEST(TrainingDocs, ThePageDescribesEveryKey) {
  const StatusOr<std::string> page = ReadFile("docs/training-file.md");
  ASSERT_TRUE(page.ok()) << page.status();
  const StatusOr<std::string> expected = WithKeyTable(*page);
  ASSERT_TRUE(expected.ok()) << expected.status();
  EXPECT_EQ(*page, *expected) << kWrite;
}

TEST(TrainingDocs, TheExampleOnThePageIsValid) {
  const StatusOr<std::string> page = ReadFile("docs/training-file.md");
  ASSERT_TRUE(page.ok()) << page.status();
  const size_t begin = page->find("```yaml\n") + 8;
  const std::string example = page->substr(begin, page->find("```", begin) - begin);
  const StatusOr<TrainingConfig> config = ParseTrainingConfig(example, "example");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_TRUE(Validate(*config).ok()) << Validate(*config);
}

}  // namespace
}  // namespace tfjob::config
