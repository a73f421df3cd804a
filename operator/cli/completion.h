// Implements `tfjob completion SHELL`: the scripts that a shell sources, and the completions that
// the scripts request from this program.
#pragma once

#include <string>
#include <vector>

#include "operator/cli/flags/flag_set.h"
#include "operator/cli/verbs/cluster.h"

namespace tfjob::cli {

// Returns the script for "bash", "zsh" or "fish"; "" for other shells.
std::string CompletionScript(const std::string& shell);

// The completions of the last word, which may be partial or empty.
struct Candidates {
  std::vector<std::string> words;  // sorted; each starts with the last word
  bool files = false;              // whether file names are possible as well
};

// Completes the last word in `words`, which are the words after the program's name. Names of TFJobs
// and namespaces are read from the cluster that the words select. If its server does not answer
// promptly, no names are returned.
Candidates Complete(CommandParser& parser, const std::vector<std::string>& words,
                    const Connect& connect);

// Returns one candidate per line, followed by the line ":0" if file names are
// possible and ":4" otherwise. kubectl expects this format from a plugin's completion
// program (kubectl_complete-tfjob).
std::string Print(const Candidates& candidates);

}  // namespace tfjob::cli
