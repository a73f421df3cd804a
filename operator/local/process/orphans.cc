#include "operator/local/process/orphans.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <sstream>
#include <vector>

#include "runtime/base/file.h"

namespace tfjob::process {
namespace {

// Returns the children of this process, which the kernel lists separately for each thread.
std::vector<pid_t> Children() {
  std::vector<pid_t> children;
  const auto threads = ListDirectory("/proc/self/task");
  if (!threads.ok()) return children;
  for (const std::string& thread : *threads) {
    const auto text = ReadFile(StrCat("/proc/self/task/", thread, "/children"));
    if (!text.ok()) continue;
    std::istringstream numbers(*text);
    for (pid_t child = 0; numbers >> child;) children.push_back(child);
  }
  return children;
}

}  // namespace

void AdoptOrphans() {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
}

void CollectOrphans(const std::set<pid_t>& known, bool kill) {
  // When a process is killed, this process adopts its children, and the next iteration kills them.
  // If processes fork faster than they are killed, the loop gives up after this many iterations.
  constexpr int kGenerations = 100;
  for (int generation = 0; generation < kGenerations; ++generation) {
    bool killed = false;
    for (const pid_t child : Children()) {
      if (known.contains(child)) continue;
      killed |= kill && ::kill(child, SIGKILL) == 0;
      waitpid(child, nullptr, kill ? 0 : WNOHANG);
    }
    if (!killed) return;
  }
}

}  // namespace tfjob::process
