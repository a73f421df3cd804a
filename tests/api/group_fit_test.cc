// Runs a program that uses the C++ API in the tasks of an all-reduce job, which share its
// validations.
#include <gtest/gtest.h>

#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/wire/test_address.h"
#include "tests/processes/program.h"

namespace tfjob::processes {
namespace {

constexpr char kValidated[] = "validated: ";

// Returns the numbers in the lines that the program has printed.
std::vector<double> Results(const std::string& output) {
  std::vector<double> numbers;
  for (size_t at = output.find(kValidated); at != std::string::npos;
       at = output.find(kValidated, at + 1)) {
    double loss = 0, accuracy = 0, auc = 0;
    EXPECT_EQ(std::sscanf(output.c_str() + at, "validated: %lf %lf %lf", &loss, &accuracy, &auc),
              3);
    numbers.insert(numbers.end(), {loss, accuracy, auc});
  }
  return numbers;
}

std::unique_ptr<Program> Start(const std::string& name, const std::string& tf_config) {
  std::map<std::string, std::string> environment = {{"TFJOB_UID", "job"}};
  if (!tf_config.empty()) environment["TF_CONFIG"] = tf_config;
  return std::make_unique<Program>(Runfile("tests/api/group_fit"), std::vector<std::string>{},
                                   environment, testing::TempDir() + "/" + name + ".log");
}

TEST(GroupFit, TasksShareTheValidationAndGetTheResultsOfOneTask) {
  const std::string cluster =
      StrCat("{\"cluster\":{\"chief\":[\"", wire::TestAddress(), "\"],\"worker\":[\"",
             wire::TestAddress(), "\",\"", wire::TestAddress(), "\"]},\"task\":{\"type\":");
  std::vector<std::unique_ptr<Program>> tasks;
  tasks.push_back(Start("chief", cluster + "\"chief\",\"index\":0}}"));
  tasks.push_back(Start("worker0", cluster + "\"worker\",\"index\":0}}"));
  tasks.push_back(Start("worker1", cluster + "\"worker\",\"index\":1}}"));
  const auto alone = Start("alone", "");
  ASSERT_EQ(alone->AwaitEnd(120s), 0) << alone->Output();
  const std::vector<double> expected = Results(alone->Output());
  ASSERT_EQ(expected.size(), 6u) << alone->Output();
  std::vector<double> first;
  for (const auto& task : tasks) {
    ASSERT_EQ(task->AwaitEnd(120s), 0) << task->Output();
    const std::vector<double> results = Results(task->Output());
    ASSERT_EQ(results.size(), expected.size()) << task->Output();
    // The variables differ from those of one task by rounding.
    for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(results[i], expected[i], 1e-4) << i;
    if (first.empty()) first = results;
    EXPECT_EQ(results, first);
  }
}

}  // namespace
}  // namespace tfjob::processes
