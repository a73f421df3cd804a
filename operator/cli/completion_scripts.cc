#include "operator/cli/completion.h"

namespace tfjob::cli {
namespace {

constexpr char kBash[] = R"(# source <(tfjob completion bash)
_tfjob_complete() {
  local line files=
  COMPREPLY=()
  while IFS= read -r line; do
    case $line in
      :0) files=1 ;;
      :*) ;;
      *) COMPREPLY+=("$line") ;;
    esac
  done < <("${COMP_WORDS[0]}" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  if [[ -n $files ]]; then compopt -o default 2>/dev/null; fi
  if [[ ${#COMPREPLY[@]} -eq 1 && ${COMPREPLY[0]} == *= ]]; then compopt -o nospace 2>/dev/null; fi
}
complete -F _tfjob_complete tfjob kubectl-tfjob
)";

constexpr char kZsh[] = R"(#compdef tfjob kubectl-tfjob
# source <(tfjob completion zsh)
_tfjob_complete() {
  local line files=
  local -a found
  while IFS= read -r line; do
    case $line in
      :0) files=1 ;;
      :*) ;;
      *) found+=("$line") ;;
    esac
  done < <("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2>/dev/null)
  (( ${#found} )) && compadd -a found
  [[ -n $files ]] && _files
}
compdef _tfjob_complete tfjob kubectl-tfjob
)";

constexpr char kFish[] = R"(# tfjob completion fish | source
function __tfjob_complete
    set -l tokens (commandline -opc)
    set -l found ($tokens[1] __complete $tokens[2..-1] (commandline -ct) 2>/dev/null)
    for line in $found
        switch $line
            case ':0'
                __fish_complete_path (commandline -ct)
            case ':*'
            case '*'
                echo $line
        end
    end
end
complete -c tfjob -f -a '(__tfjob_complete)'
complete -c kubectl-tfjob -f -a '(__tfjob_complete)'
)";

}  // namespace

std::string CompletionScript(const std::string& shell) {
  if (shell == "bash") return kBash;
  if (shell == "zsh") return kZsh;
  return shell == "fish" ? kFish : "";
}

}  // namespace tfjob::cli
