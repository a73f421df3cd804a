#include "runtime/base/env.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>

extern char** environ;

namespace tfjob {
namespace {

// Returns the cgroup's CPU quota in processors, or 0 if there is no quota.
double CgroupQuota() {
  std::string quota;
  double period = 0;
  if (std::ifstream v2("/sys/fs/cgroup/cpu.max");
      v2 >> quota >> period && quota != "max" && period > 0) {
    return std::atof(quota.c_str()) / period;
  }
  double v1_quota = 0;
  std::ifstream v1("/sys/fs/cgroup/cpu/cpu.cfs_quota_us");
  std::ifstream v1_period("/sys/fs/cgroup/cpu/cpu.cfs_period_us");
  if (v1 >> v1_quota && v1_period >> period && v1_quota > 0 && period > 0) return v1_quota / period;
  return 0;
}

// Returns the cgroup's memory limit in bytes, or nullopt if there is no limit.
std::optional<int64_t> CgroupMemory() {
  for (const char* path :
       {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    int64_t limit = 0;
    // If there is no limit, the file contains "max", which does not parse as a number.
    if (std::ifstream file(path); file >> limit && limit > 0) return limit;
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> GetEnv(const char* name) {
  const char* value = std::getenv(name);
  if (value == nullptr) return std::nullopt;
  return value;
}

std::optional<std::string> TakeEnv(const char* name) {
  char* value = std::getenv(name);
  if (value == nullptr) return std::nullopt;
  std::string taken = value;
  explicit_bzero(value, taken.size());
  unsetenv(name);
  return taken;
}

std::vector<std::string> EnvironmentBlock() {
  std::vector<std::string> block;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry)
    block.emplace_back(*entry);
  return block;
}

std::string HostName() {
  char name[256] = "localhost";
  gethostname(name, sizeof(name) - 1);
  return name;
}

int AvailableProcessors() {
  cpu_set_t set;
  int processors = 1;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) processors = CPU_COUNT(&set);
  if (double quota = CgroupQuota(); quota > 0) {
    processors = std::min(processors, static_cast<int>(std::ceil(quota)));
  }
  return std::max(processors, 1);
}

int64_t AvailableMemory() {
  const int64_t machine =
      static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<int64_t>(sysconf(_SC_PAGE_SIZE));
  return std::min(machine, CgroupMemory().value_or(machine));
}

}  // namespace tfjob
