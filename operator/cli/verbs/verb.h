// Describes one verb of the command line, such as `tfjob get`: its name, help and flags, and what
// it does. To add a verb that works with a cluster, write one file with a class derived from
// ClusterVerb, and add the verb to verbs.h.
#pragma once

#include <string>
#include <utility>

#include "operator/cli/flags/flag_set.h"
#include "operator/cli/verbs/cluster.h"

namespace tfjob::cli {

// The arguments of Verb::Run. They must outlive the verb.
struct Invocation {
  const ClusterFlags& cluster;
  const Connect& connect;
  StopSource& stop;
  view::Console& console;
};

// Implements one verb. A verb stores the values of its flags, so each command line needs its own
// verbs. Not thread-safe.
class Verb {
 public:
  Verb(std::string name, std::string help) : name_(std::move(name)), help_(std::move(help)) {}
  virtual ~Verb() = default;

  const std::string& name() const { return name_; }
  // Returns a one-line description for the help.
  const std::string& help() const { return help_; }

  // Adds to `flags` the verb's flags and arguments, and the checks that need no cluster. Parsing
  // stores the values in the verb.
  virtual void AddFlags(FlagSet& flags) = 0;
  // Runs the verb and returns the program's exit code. Call this after parsing.
  virtual int Run(const Invocation& invocation) = 0;

  // Returns whether the verb accepts the flags that select a cluster.
  virtual bool uses_cluster() const { return false; }
  // Returns true if a signal must not end the program before the verb has stopped everything that
  // it started.
  virtual bool stops_in_order() const { return false; }

 private:
  const std::string name_, help_;
};

// Implements a verb that works with the TFJobs of a cluster.
class ClusterVerb : public Verb {
 public:
  using Verb::Verb;

  // Connects and runs the verb. Returns kBadInput if the kubeconfig or the cluster flags are wrong,
  // 128 + the signal if a stop was requested, and otherwise the verb's exit code.
  int Run(const Invocation& invocation) final;
  bool uses_cluster() const final { return true; }

  // Runs the verb on a cluster and returns its exit code.
  virtual int RunOn(const VerbContext& context) = 0;
};

}  // namespace tfjob::cli
