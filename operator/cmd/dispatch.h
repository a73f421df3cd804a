// What was asked for on the command line, carried out.
#pragma once

#include "operator/cmd/flags.h"

namespace tfjob::cmd {

// The program's exit code. `stop` ends a verb that takes its time.
int Dispatch(const CommandLine& line, const Connect& connect, StopSource& stop, Console& console);

}  // namespace tfjob::cmd
