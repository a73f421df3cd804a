// tfjob completion SHELL: what a shell sources, and what it then asks this program.
#pragma once

#include <string>
#include <vector>

#include "operator/cli/verbs/cluster.h"

namespace CLI {
class App;
}

namespace tfjob::cli {

// The script of "bash", "zsh" or "fish"; "" for other shells.
std::string CompletionScript(const std::string& shell);

// The names of the verbs that help lists.
std::vector<std::string> Verbs(const CLI::App& app);

// What can stand in the place of the last word, which may be begun or empty.
struct Candidates {
  std::vector<std::string> words;  // sorted; all begin as the last word does
  bool files = false;              // files can stand there too
};

// `words` are those after the program's name. Names of TFJobs come from the cluster that the words
// name; a server that does not answer at once gives none.
Candidates Complete(const CLI::App& app, const std::vector<std::string>& words,
                    const Connect& connect);

// One a line, and last a line ":4", or ":0" when files may follow: as kubectl reads plugins'
// completions (kubectl_complete-tfjob).
std::string Print(const Candidates& candidates);

}  // namespace tfjob::cli
