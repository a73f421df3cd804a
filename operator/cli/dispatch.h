// Carries out the parsed command line.
#pragma once

#include "operator/cli/flags.h"

namespace tfjob::cli {

// Returns the program's exit code. `stop` ends a long-running verb.
int Dispatch(const CommandLine& line, const Connect& connect, StopSource& stop,
             view::Console& console);

}  // namespace tfjob::cli
