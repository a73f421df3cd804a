#include "tests/processes/program.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "runtime/base/check.h"
#include "runtime/base/env.h"
#include "runtime/base/file.h"

extern char** environ;

namespace tfjob::processes {
namespace {

constexpr Duration kPoll = 20ms;

// Returns the strings in the form that exec takes. `strings` must outlive the result.
std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& text : strings) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> EnvironmentWith(const std::map<std::string, std::string>& more) {
  std::vector<std::string> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string text = *variable;
    if (!more.contains(text.substr(0, text.find('=')))) variables.push_back(text);
  }
  for (const auto& [name, value] : more) variables.push_back(StrCat(name, "=", value));
  return variables;
}

}  // namespace

Program::Program(const std::string& path, const std::vector<std::string>& arguments,
                 const std::map<std::string, std::string>& environment, const std::string& output)
    : output_(output) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 1, output.c_str(),
                                   O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0644);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  std::vector<std::string> words = {path.substr(path.rfind('/') + 1)};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<std::string> variables = EnvironmentWith(environment);
  const int error = posix_spawn(&pid_, path.c_str(), &actions, nullptr, Pointers(words).data(),
                                Pointers(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  ENFORCE(error == 0, path);
}

Program::~Program() {
  if (Ended()) return;
  Signal(SIGTERM);
  if (AwaitEnd(60s) < 0) {
    Signal(SIGKILL);
    AwaitEnd(60s);
  }
}

void Program::Signal(int number) const {
  kill(pid_, number);
}

void Program::Pause() {
  Signal(SIGSTOP);
  int status = 0;
  if (ended_ || waitpid(pid_, &status, WUNTRACED) != pid_ || WIFSTOPPED(status)) return;
  ended_ = true;
  status_ = status;
}

bool Program::Ended() {
  if (!ended_) ended_ = waitpid(pid_, &status_, WNOHANG) == pid_;
  return ended_;
}

int Program::AwaitEnd(Duration timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (!Ended()) {
    if (std::chrono::steady_clock::now() >= deadline) return -1;
    std::this_thread::sleep_for(kPoll);
  }
  return WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_);
}

std::string Program::Output() const {
  return ReadFile(output_).value_or("");
}

bool Program::AwaitOutput(std::string_view text, Duration timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  while (Output().find(text) == std::string::npos) {
    if (Ended() || std::chrono::steady_clock::now() >= deadline) return false;
    std::this_thread::sleep_for(kPoll);
  }
  return true;
}

std::string Runfile(const std::string& path) {
  const std::string sources = GetEnv("TEST_SRCDIR").value_or(".");
  return StrCat(sources, "/", GetEnv("TEST_WORKSPACE").value_or("tfjob"), "/", path);
}

}  // namespace tfjob::processes
