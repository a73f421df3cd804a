#include "operator/local/store/validation.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace tfjob::store {
namespace {

TEST(Validation, AcceptsAndRefusesNamesAsAnApiServerDoes) {
  EXPECT_TRUE(IsDnsSubdomain("a-1.b"));
  EXPECT_FALSE(IsDnsSubdomain(""));
  EXPECT_FALSE(IsDnsSubdomain("A"));
  EXPECT_FALSE(IsDnsSubdomain("-a"));
  EXPECT_FALSE(IsDnsSubdomain("a..b"));
  EXPECT_FALSE(IsDnsSubdomain(std::string(254, 'a')));
  EXPECT_TRUE(IsDnsLabel(std::string(63, 'a')));
  EXPECT_FALSE(IsDnsLabel(std::string(64, 'a')));
  EXPECT_FALSE(IsDnsLabel("1a"));
  EXPECT_FALSE(IsDnsLabel("a.b"));
}

objects::ObjectMeta Labelled(const std::string& key, const std::string& value) {
  objects::ObjectMeta metadata;
  metadata.name = "x";
  metadata.name_space = "ns";
  metadata.labels.Set(key, value);
  return metadata;
}

TEST(Validation, ChecksLabelKeysAndValues) {
  const auto kind = objects::Kind::kService;
  EXPECT_TRUE(ValidateLabels(kind, Labelled("example.com/Some_name.x", "")).ok());
  EXPECT_TRUE(ValidateLabels(kind, Labelled("a", "V-1")).ok());
  EXPECT_FALSE(ValidateLabels(kind, Labelled("a/b/c", "v")).ok());
  EXPECT_FALSE(ValidateLabels(kind, Labelled("", "v")).ok());
  EXPECT_FALSE(ValidateLabels(kind, Labelled("a", "-v")).ok());
  EXPECT_FALSE(ValidateLabels(kind, Labelled("a", std::string(64, 'v'))).ok());
}

TEST(Validation, NamesTheFieldOfAPodWithoutContainers) {
  const Status status =
      ValidateNew(objects::Kind::kPod, Json{{"spec", Json::object()}}, Labelled("a", "b"));
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Message(status), "Pod \"x\" is invalid: spec.containers: Required value");
}

}  // namespace
}  // namespace tfjob::store
