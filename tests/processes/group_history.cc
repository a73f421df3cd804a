#include "tests/processes/group_history.h"

#include <sstream>
#include <string_view>

namespace tfjob::processes {
namespace {

// Returns the value of " KEY=VALUE" in a line of the log, without quotes; "" if there is none.
std::string ValueIn(const std::string& line, const std::string& key) {
  size_t begin = line.find(StrCat(" ", key, "="));
  if (begin == std::string::npos) return "";
  begin += key.size() + 2;
  const bool quoted = line[begin] == '"';
  if (quoted) ++begin;
  return line.substr(begin, line.find(quoted ? '"' : ' ', begin) - begin);
}

int64_t NumberIn(const std::string& line, const std::string& key) {
  const std::string value = ValueIn(line, key);
  return value.empty() ? -1 : std::stoll(value);
}

}  // namespace

void GroupHistory::Add(const std::string& log) {
  Generation generation;
  int64_t received = -1;
  bool leads = false;
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    const auto says = [&line](std::string_view text) { return line.find(text) != line.npos; };
    if (says(" joined the group ")) {
      generation = {NumberIn(line, "generation"), ValueIn(line, "leader")};
      leads = NumberIn(line, "rank") == 0;
      tasks_[generation] = NumberIn(line, "tasks");
    } else if (says(" took over the state of another task ")) {
      received = NumberIn(line, "step");
    } else if (says(" saving a checkpoint ") && !leads && saved_.ok()) {
      saved_ = Internal("saved in generation ", generation.number, ", which ", generation.leader,
                        " leads: ", line);
    } else if (says(" train step ") && NumberIn(line, "step") != received) {
      // A task that has received the state after a step logs this step, but has not taken it.
      ++logged_[NumberIn(line, "step")][generation];
    }
  }
}

Status GroupHistory::Check() const {
  RETURN_IF_ERROR(saved_);
  for (const auto& [step, generations] : logged_) {
    const Generation* before = nullptr;
    for (const auto& [generation, logged] : generations) {
      if (!HasTaken(generation, logged)) continue;
      if (before != nullptr) {
        return Internal("step ", step, " was taken in generation ", before->number, ", led by ",
                        before->leader, ", and in generation ", generation.number, ", led by ",
                        generation.leader);
      }
      before = &generation;
    }
  }
  return OkStatus();
}

size_t GroupHistory::generations() const {
  std::set<Generation> all;
  for (const auto& [step, generations] : logged_) {
    for (const auto& [generation, logged] : generations) {
      if (HasTaken(generation, logged)) all.insert(generation);
    }
  }
  return all.size();
}

}  // namespace tfjob::processes
