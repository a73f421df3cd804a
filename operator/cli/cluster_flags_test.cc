// Tests the cluster verbs as a user calls them, and shell completion, on top of the object store.
#include <gtest/gtest.h>
#include <stdlib.h>

#include "operator/cli/command_line.h"
#include "operator/cli/completion.h"
#include "operator/cli/verbs/testing.h"
#include "runtime/base/file.h"

namespace tfjob::cli {
namespace {

using testing::Conditions;

// Forwards to one shared fake cluster, because each command line under test must own its cluster.
class ForwardingCluster : public Cluster {
 public:
  explicit ForwardingCluster(testing::FakeCluster& to) : to_(to) {}
  client::Client& client() override { return to_.client(); }
  LogReader& logs() override { return to_.logs(); }
  std::string server() const override { return to_.server(); }
  std::string name_space() const override { return to_.name_space(); }

 private:
  testing::FakeCluster& to_;
};

class ClusterFlagsTest : public ::testing::Test {
 protected:
  ClusterFlagsTest() {
    connect_ = [this](const ClusterFlags& flags) -> StatusOr<std::unique_ptr<Cluster>> {
      flags_ = flags;
      if (!flags.name_space.empty()) world_.cluster.SetNamespace(flags.name_space);
      return std::make_unique<ForwardingCluster>(world_.cluster);
    };
    world_.cluster.CreateJob("mnist", "{PS: {}, Worker: {replicas: 2}}",
                             "{" + Conditions({{"Running", "True"}}) + "}");
    world_.cluster.CreateJob("other", "{Worker: {}}");
  }
  int Call(std::vector<const char*> arguments, const char* program = "tfjob") {
    arguments.insert(arguments.begin(), program);
    const CommandLine line =
        ParseCommandLine(static_cast<int>(arguments.size()), arguments.data(), world_.console);
    return RunCommandLine(line, connect_, world_.stop, world_.console);
  }
  std::string Completed(const std::vector<std::string>& words) {
    return CompleteLine(words, connect_);
  }

  testing::World world_;
  Connect connect_;
  ClusterFlags flags_;
};

TEST_F(ClusterFlagsTest, FlagsReachTheirVerbs) {
  EXPECT_EQ(Call({"get", "mnist", "-o", "name"}), view::kSucceeded);
  EXPECT_EQ(world_.Out(), "tfjob.kubeflow.org/mnist\n");
  EXPECT_EQ(Call({"describe", "tfjob/mnist"}), view::kSucceeded);
  EXPECT_TRUE(world_.Out().starts_with("Name:        mnist\n"));
  EXPECT_EQ(Call({"scale", "mnist", "--replicas", "worker=3", "--replicas=ps=2"}),
            view::kSucceeded);
  EXPECT_EQ(world_.Out(), "tfjob.kubeflow.org/mnist scaled: ps 1 to 2, worker 2 to 3\n");
  EXPECT_EQ(Call({"suspend", "mnist", "other"}), view::kSucceeded);
  EXPECT_EQ(Call({"resume", "mnist"}), view::kSucceeded);
  world_.Out();
  EXPECT_EQ(Call({"wait", "mnist", "--for", "Failed", "--for=Running", "--timeout=5s"}),
            view::kSucceeded);
  EXPECT_EQ(world_.Out(), "tfjob.kubeflow.org/mnist condition met\n");
  EXPECT_EQ(Call({"wait", "mnist", "--for=Succeeded", "--timeout=0"}), view::kFailed);
  EXPECT_EQ(Call({"restart", "mnist", "--replica", "worker/1"}), view::kFailed);
  EXPECT_EQ(Call({"logs", "mnist", "--replica", "ps", "--tail", "5"}), view::kFailed);
  EXPECT_EQ(Call({"top", "mnist"}), view::kSucceeded);
  EXPECT_NE(world_.Out().find("(there is no pod mnist-worker-0)"), std::string::npos);
}

TEST_F(ClusterFlagsTest, ClusterFlagsStandBeforeOrAfterTheVerb) {
  EXPECT_EQ(Call({"-n", "a", "get"}), view::kSucceeded);
  EXPECT_EQ(flags_.name_space, "a");
  EXPECT_EQ(Call({"get", "--namespace=ns", "--context", "dev", "--kubeconfig=/x", "--as", "jane",
                  "--as-group", "a", "--as-group=b", "--request-timeout", "5s"}),
            view::kSucceeded);
  EXPECT_EQ(flags_.name_space, "ns");
  EXPECT_EQ(flags_.context, "dev");
  EXPECT_EQ(flags_.kubeconfig, "/x");
  EXPECT_EQ(flags_.as, "jane");
  EXPECT_EQ(flags_.as_groups, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(flags_.request_timeout, Duration(5s));
}

TEST_F(ClusterFlagsTest, AKubeconfigThatIsWrongEndsWith2) {
  connect_ = [](const ClusterFlags&) { return InvalidArgument("/x: no context dev"); };
  EXPECT_EQ(Call({"get"}), view::kBadInput);
  EXPECT_EQ(world_.Err(), "tfjob: /x: no context dev\n");
}

TEST_F(ClusterFlagsTest, HelpNamesTheProgramAsItWasCalled) {
  EXPECT_EQ(Call({"--help"}, "/usr/local/bin/kubectl-tfjob"), view::kSucceeded);
  EXPECT_NE(world_.Out().find("Usage: kubectl tfjob "), std::string::npos);
  EXPECT_EQ(Call({"get", "--help"}), view::kSucceeded);
  const std::string help = world_.Out();
  EXPECT_NE(help.find("Usage: tfjob get "), std::string::npos) << help;
  EXPECT_NE(help.find("--context"), std::string::npos) << help;
}

struct Completion {
  std::vector<std::string> words;
  const char* lines;
};

TEST_F(ClusterFlagsTest, CompletesVerbsFlagsValuesAndNames) {
  const std::vector<Completion> cases = {
      {{"re"}, "restart\nresume\n:4\n"},
      {{"get", "m"}, "mnist\n:4\n"},
      {{"get", "mnist", ""}, "other\n:4\n"},
      {{"-n", "ns", "describe", "o"}, "other\n:4\n"},
      {{"logs", "mnist", ""}, ":4\n"},
      {{"get", "-o", ""}, "json\nname\nwide\nyaml\n:4\n"},
      {{"explain", "-o", ""}, "json\nyaml\n:4\n"},
      {{"get", "--output=y"}, "--output=yaml\n:4\n"},
      {{"get", "--output", "=", "y"}, "yaml\n:4\n"},
      {{"wait", "mnist", "--for", "S"}, "Succeeded\nSuspended\n:4\n"},
      {{"get", "-n", "n"}, "ns\n:4\n"},
      {{"logs", "mnist", "--pr"}, "--previous\n:4\n"},
      {{"run", ""}, ":0\n"},
      {{"completion", "b"}, "bash\n:4\n"},
      {{"nonsense", "x"}, ":4\n"}};
  for (const Completion& completion : cases) {
    EXPECT_EQ(Completed(completion.words), completion.lines) << completion.words.back();
  }
  EXPECT_EQ(Call({"get", "m"}, "kubectl_complete-tfjob"), view::kSucceeded);
  EXPECT_EQ(world_.Out(), "mnist\n:4\n");
}

TEST_F(ClusterFlagsTest, AServerThatIsAwayCompletesNothing) {
  connect_ = [](const ClusterFlags&) { return Unavailable("away"); };
  EXPECT_EQ(Completed({"get", ""}), ":4\n");
}

// Tests that bash can source the script and complete `tfjob get m`. A shell function stands in for
// the program.
TEST_F(ClusterFlagsTest, BashUnderstandsItsScript) {
  const std::string folder = StrCat(::testing::TempDir(), "completion.", getpid());
  ASSERT_TRUE(MakeDirectories(folder).ok());
  ASSERT_EQ(Call({"completion", "bash"}), view::kSucceeded);
  ASSERT_TRUE(WriteFileAtomically(folder + "/script", world_.Out()).ok());
  const std::string test =
      StrCat("tfjob() { [ \"$*\" = '__complete get m' ] && printf 'mnist\\nmnist-2\\n:4\\n'; }\n",
             "source ", folder, "/script\nCOMP_WORDS=(tfjob get m)\nCOMP_CWORD=2\n",
             "_tfjob_complete\n[ \"${COMPREPLY[*]}\" = 'mnist mnist-2' ]\n");
  ASSERT_TRUE(WriteFileAtomically(folder + "/test", test).ok());
  EXPECT_EQ(system(StrCat("bash ", folder, "/test").c_str()), 0);
  EXPECT_FALSE(CompletionScript("zsh").empty());
  EXPECT_FALSE(CompletionScript("fish").empty());
}

}  // namespace
}  // namespace tfjob::cli
