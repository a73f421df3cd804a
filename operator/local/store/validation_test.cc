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

// Returns the error for a pod if the second element of one of its lists has this name.
std::string RefusalOf(const std::string& list, const Json& name) {
  const Json container = {{"name", "tensorflow"}, {"image", "i"}};
  Json spec = {{"containers", Json::array({container})},
               {"initContainers", Json::array({container})},
               {"volumes", Json::array({{{"name", "data"}}})}};
  spec[list].push_back({{"name", name}});
  const Json pod = {{"spec", spec}};
  return std::string(Message(ValidateNew(objects::Kind::kPod, pod, Labelled("a", "b"))));
}

// The names of containers and volumes become parts of paths, so they must be DNS labels.
TEST(Validation, NamesOfContainersAndVolumesAreDnsLabels) {
  for (const std::string list : {"containers", "initContainers", "volumes"}) {
    for (const std::string& good : {std::string("1-a"), std::string(63, 'a')}) {
      EXPECT_EQ(RefusalOf(list, good), "") << list;
    }
    for (const std::string& bad : {std::string("../../x"), std::string(".."), std::string("a.b"),
                                   std::string("a/b"), std::string("A"), std::string("a_b"),
                                   std::string("-a"), std::string("a-"), std::string(64, 'a')}) {
      EXPECT_EQ(RefusalOf(list, bad),
                StrCat("Pod \"x\" is invalid: spec.", list, "[1].name: Invalid value: \"", bad,
                       "\": a name is at most 63 lower case letters, digits and '-', with a letter "
                       "or digit at both ends"));
    }
    for (const Json& none : {Json(), Json("")}) {
      EXPECT_EQ(RefusalOf(list, none),
                StrCat("Pod \"x\" is invalid: spec.", list, "[1].name: Required value"));
    }
    EXPECT_EQ(RefusalOf(list, 7), StrCat("spec.", list, "[1].name: expected a string, got 7"));
  }
}

}  // namespace
}  // namespace tfjob::store
