// What was asked for on the command line, carried out.
#pragma once

#include "operator/cli/flags.h"

namespace tfjob::cli {

// The program's exit code. `stop` ends a verb that takes its time.
int Dispatch(const CommandLine& line, const Connect& connect, StopSource& stop,
             view::Console& console);

}  // namespace tfjob::cli
