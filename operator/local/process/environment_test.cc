#include "operator/local/process/environment.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "operator/local/process/options.h"

namespace tfjob::process {
namespace {

TEST(ExpandTest, FollowsKubernetesSyntax) {
  const Variables variables = {{"A", "one"}, {"B", "two words"}};
  const std::pair<const char*, const char*> cases[] = {
      {"plain", "plain"},
      {"$(A)", "one"},
      {"x$(A)y$(B)z", "xoneytwo wordsz"},
      {"$(UNKNOWN)", "$(UNKNOWN)"},
      {"$$(A)", "$(A)"},
      {"$$$(A)", "$one"},
      {"$A", "$A"},
      {"$(A", "$(A"},
      {"$", "$"},
      {"$$", "$"},
      {"$()", "$()"},
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(Expand(text, variables), expected) << text;
}

class EnvironmentTest : public ::testing::Test {
 protected:
  static Json PodJson(Json container) {
    container["name"] = "tensorflow";
    return {
        {"metadata",
         {{"name", "job-ps-0"}, {"namespace", "ns"}, {"uid", "u1"}, {"labels", {{"role", "ps"}}}}},
        {"spec", {{"containers", {std::move(container)}}}}};
  }

  StatusOr<Variables> Resolve(Json container) {
    auto pod = ParsePodSpec(PodJson(std::move(container)));
    if (!pod.ok()) return pod.status();
    const ConfigMapReader reader =
        [](const std::string& name) -> StatusOr<std::shared_ptr<const Json>> {
      if (name != "settings") return NotFound("there is no ConfigMap \"", name, "\"");
      return std::make_shared<const Json>(
          Json{{"data", {{"mode", "fast"}}}, {"binaryData", {{"blob", "aGk="}}}});
    };
    return ResolveEnvironment(*pod, pod->containers[0], "127.0.0.1", reader, {{"PATH", "/bin"}});
  }
};

TEST_F(EnvironmentTest, ValuesReferToEarlierVariablesOnly) {
  const auto variables = Resolve(
      {{"env",
        {{{"name", "EARLY"}, {"value", "1$(LATE)"}}, {{"name", "LATE"}, {"value", "2$(EARLY)"}}}}});
  ASSERT_TRUE(variables.ok()) << variables.status();
  EXPECT_EQ(variables->at("EARLY"), "1$(LATE)");
  EXPECT_EQ(variables->at("LATE"), "21$(LATE)");
  EXPECT_EQ(variables->at("PATH"), "/bin");
  EXPECT_EQ(variables->at("HOSTNAME"), "job-ps-0");
}

TEST_F(EnvironmentTest, ReadsFieldsOfThePod) {
  const std::pair<const char*, const char*> fields[] = {
      {"metadata.name", "job-ps-0"},   {"metadata.namespace", "ns"},
      {"metadata.uid", "u1"},          {"metadata.labels['role']", "ps"},
      {"metadata.labels['none']", ""}, {"status.podIP", "127.0.0.1"}};
  for (const auto& [field, expected] : fields) {
    const auto variables = Resolve(
        {{"env", {{{"name", "X"}, {"valueFrom", {{"fieldRef", {{"fieldPath", field}}}}}}}}});
    ASSERT_TRUE(variables.ok()) << variables.status();
    EXPECT_EQ(variables->at("X"), expected) << field;
  }
}

TEST_F(EnvironmentTest, ReadsConfigMaps) {
  const auto key = [](const char* map, const char* key, bool optional) -> Json {
    return {{"env",
             {{{"name", "X"},
               {"valueFrom",
                {{"configMapKeyRef", {{"name", map}, {"key", key}, {"optional", optional}}}}}}}}};
  };
  EXPECT_EQ(Resolve(key("settings", "mode", false))->at("X"), "fast");
  EXPECT_EQ(Resolve(key("settings", "blob", false))->at("X"), "hi");
  EXPECT_FALSE(Resolve(key("settings", "none", true))->contains("X"));
  EXPECT_FALSE(Resolve(key("absent", "mode", true))->contains("X"));
  const auto missing = Resolve(key("absent", "mode", false));
  EXPECT_TRUE(absl::IsNotFound(missing.status()));
  EXPECT_EQ(Message(missing.status()),
            "spec.containers[0].env[0]: there is no ConfigMap \"absent\"");
  const auto all =
      Resolve({{"envFrom", {{{"prefix", "P_"}, {"configMapRef", {{"name", "settings"}}}}}}});
  EXPECT_EQ(all->at("P_mode"), "fast");
}

TEST_F(EnvironmentTest, NamesSourcesThatThisMachineHasNot) {
  const auto variables = Resolve(
      {{"env",
        {{{"name", "X"}, {"valueFrom", {{"secretKeyRef", {{"name", "s"}, {"key", "k"}}}}}}}}});
  EXPECT_EQ(Message(variables.status()),
            "spec.containers[0].env[0].valueFrom.secretKeyRef: no such source on this machine");
}

class CommandTest : public ::testing::Test {
 protected:
  StatusOr<CommandLine> Resolve(const std::string& image, std::vector<std::string> command,
                                std::vector<std::string> args) {
    Container container;
    container.path = "spec.containers[0]";
    container.image = image;
    container.command = std::move(command);
    container.args = std::move(args);
    return ResolveCommand(container, {{"tfjob/trainer", "/opt/tfjob-trainer"}},
                          {{"PATH", "/a:/b"}, {"FILE", "t.yaml"}});
  }
};

TEST_F(CommandTest, MapsTheTrainersImageWhateverRegistryAndTag) {
  for (const char* image :
       {"tfjob/trainer", "tfjob/trainer:1.2", "registry.invalid/tfjob/trainer:latest",
        "localhost:5000/tfjob/trainer", "registry.invalid/tfjob/trainer@sha256:abc"}) {
    const auto line = Resolve(image, {}, {"--config=$(FILE)"});
    ASSERT_TRUE(line.ok()) << image << ": " << line.status();
    EXPECT_EQ(line->programs, std::vector<std::string>{"/opt/tfjob-trainer"});
    EXPECT_EQ(line->arguments, (std::vector<std::string>{"/opt/tfjob-trainer", "--config=t.yaml"}));
  }
}

TEST_F(CommandTest, RefusesAnotherImageWithoutCommand) {
  const auto line = Resolve("ghcr.io/nottfjob/trainer:1", {}, {});
  EXPECT_EQ(Message(line.status()),
            "spec.containers[0]: the image \"ghcr.io/nottfjob/trainer:1\" is not a program of this "
            "machine and "
            "images are not pulled: give the container a command, or map the image with --image "
            "ghcr.io/nottfjob/trainer=PROGRAM");
}

TEST_F(CommandTest, LooksProgramsUp) {
  EXPECT_EQ(Resolve("x", {"python", "$(FILE)"}, {"-v"})->arguments,
            (std::vector<std::string>{"python", "t.yaml", "-v"}));
  EXPECT_EQ(Resolve("x", {"python"}, {})->programs,
            (std::vector<std::string>{"/a/python", "/b/python"}));
  EXPECT_EQ(Resolve("x", {"/usr/bin/env"}, {})->programs, std::vector<std::string>{"/usr/bin/env"});
  EXPECT_EQ(Resolve("x", {"tfjob-trainer"}, {})->programs,
            std::vector<std::string>{"/opt/tfjob-trainer"});
}

TEST(PodSpecTest, WarnsOnceForEachFieldWithoutEffect) {
  const Json pod_template = {
      {"spec",
       {{"securityContext", {{"runAsUser", 1}}},
        {"hostNetwork", true},
        {"volumes", {{{"name", "data"}, {"persistentVolumeClaim", {{"claimName", "c"}}}}}},
        {"containers",
         {{{"name", "tensorflow"},
           {"command", {"true"}},
           {"tty", false},
           {"resources", {{"limits", {{"cpu", 1}}}}},
           {"livenessProbe", {{"exec", {}}}}}}}}}};
  const auto warnings = CheckTemplate({}, pod_template, "spec.tfReplicaSpecs.PS.template");
  ASSERT_TRUE(warnings.ok()) << warnings.status();
  std::vector<std::string> fields;
  for (const std::string& warning : *warnings)
    fields.push_back(warning.substr(0, warning.find(' ')));
  const std::string spec = "spec.tfReplicaSpecs.PS.template.spec.";
  EXPECT_EQ(fields,
            (std::vector<std::string>{
                spec + "securityContext", spec + "containers[0].livenessProbe",
                spec + "containers[0].resources", spec + "volumes[0].persistentVolumeClaim"}));
}

TEST(PodSpecTest, AFieldThatIsNullHasNoEffectToWarnOf) {
  const Json context = {{"allowPrivilegeEscalation", nullptr}, {"privileged", nullptr}};
  const Json container = {
      {"name", "tensorflow"}, {"command", {"true"}}, {"securityContext", context}};
  const auto warnings =
      CheckTemplate({}, {{"spec", {{"containers", Json::array({container})}}}}, "template");
  ASSERT_TRUE(warnings.ok()) << warnings.status();
  EXPECT_EQ(*warnings, std::vector<std::string>());
}

TEST(PodSpecTest, RefusesWhatCannotBeRun) {
  const auto refusal = [](Json spec) {
    return std::string(Message(ParsePodSpec({{"spec", std::move(spec)}}).status()));
  };
  EXPECT_EQ(refusal(Json::object()),
            "spec.containers: expected at least one container, but it is missing");
  EXPECT_EQ(
      refusal({{"containers",
                {{{"name", "a"}, {"volumeMounts", {{{"name", "v"}, {"mountPath", "/v"}}}}}}}}),
      "spec.containers[0].volumeMounts[0].name: there is no volume \"v\" in spec.volumes");
  EXPECT_EQ(refusal({{"containers", {{{"name", "a"}}, {{"name", "a"}}}}}),
            "spec.containers[1].name: another container has the name \"a\"");
  EXPECT_EQ(refusal({{"containers", "none"}}), "spec.containers: expected a list, got \"none\"");
}

}  // namespace
}  // namespace tfjob::process
