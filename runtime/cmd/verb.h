// Defines the interface of a subcommand of tfjob-trainer. Each file *_verb.cc implements one.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/base/stop.h"

namespace tfjob::cmd {

class Verb {
 public:
  virtual ~Verb() = default;
  virtual std::string name() const = 0;
  virtual std::string help() const = 0;
  virtual void AddFlags(CLI::App& app) = 0;
  // Runs the subcommand. Writes the text for standard output to `output`, even if it returns an
  // error. May return Cancelled once `stop` has been requested; either way, the process exits one
  // second after the request. Replaces existing files only when the new files are complete.
  virtual Status Run(const StopSource& stop, std::ostream& output) = 0;
};

std::unique_ptr<Verb> MakePredictVerb();
std::unique_ptr<Verb> MakeEvaluateVerb();
std::unique_ptr<Verb> MakeExportVerb();
std::unique_ptr<Verb> MakeSummaryVerb();
std::unique_ptr<Verb> MakeDataVerb();

// Returns all verbs in the order of the help.
std::vector<std::unique_ptr<Verb>> Verbs();

}  // namespace tfjob::cmd
