// Records the events of a simulation, to be printed if it fails.
#pragma once

#include <string>
#include <vector>

#include "tests/simulation/machine/machine.h"

namespace tfjob::simulation {

class Story {
 public:
  explicit Story(const Machine& machine) : machine_(machine) {}

  void Tell(const std::string& task, const std::string& what);
  // Records a violation. Only the first one is kept.
  void Violate(const std::string& what);

  // Returns the violation, or "" if there was none.
  const std::string& violation() const { return violation_; }
  // Returns the last `count` events before the violation or, if there was none, the last `count`
  // events.
  std::string Last(size_t count) const;

 private:
  const Machine& machine_;
  std::vector<std::string> events_;
  std::string violation_;
};

}  // namespace tfjob::simulation
