// Describes one verb of the command line, such as `tfjob get`: name, help, flags, and what it does.
// A new verb is one file that derives from ClusterVerb, and its line in verbs.h.
#pragma once

#include <string>
#include <utility>

#include "operator/cli/flags/flag_set.h"
#include "operator/cli/verbs/cluster.h"

namespace tfjob::cli {

// What one call of the program gives to its verb. All of it must outlive the verb.
struct Invocation {
  const ClusterFlags& cluster;
  const Connect& connect;
  StopSource& stop;
  view::Console& console;
};

// Holds the values of its flags, so each command line needs verbs of its own. Not thread-safe.
class Verb {
 public:
  Verb(std::string name, std::string help) : name_(std::move(name)), help_(std::move(help)) {}
  virtual ~Verb() = default;

  const std::string& name() const { return name_; }
  // Returns one line for the help.
  const std::string& help() const { return help_; }

  // Declares flags, arguments, and checks that need no cluster. `flags` write to the verb.
  virtual void AddFlags(FlagSet& flags) = 0;
  // Runs the verb and returns the program's exit code. Call after parsing.
  virtual int Run(const Invocation& invocation) = 0;

  // Returns whether the verb takes the flags that select a cluster.
  virtual bool uses_cluster() const { return false; }
  // Returns whether the verb must end what it started before the program exits on a signal.
  virtual bool stops_in_order() const { return false; }

 private:
  const std::string name_, help_;
};

// A verb that works with the TFJobs of a cluster.
class ClusterVerb : public Verb {
 public:
  using Verb::Verb;

  // Connects and runs the verb. Returns kBadInput if kubeconfig or cluster flags are wrong, 128 +
  // the signal if `stop` ended a verb that would have continued, otherwise the verb's exit code.
  int Run(const Invocation& invocation) final;
  bool uses_cluster() const final { return true; }

  // Runs the verb on a cluster and returns its exit code.
  virtual int RunOn(const VerbContext& context) = 0;
};

}  // namespace tfjob::cli
