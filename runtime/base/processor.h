// Checks for the processor that a program is built for. On any other processor, a program that
// links this library prints a message and exits with code 1 instead of dying of SIGILL. The check
// runs before anything else in the program, including initializers of static variables.
#pragma once

namespace tfjob {

// Exits the process unless `supported`. Runs automatically at start; async-signal-safe.
void RequireProcessor(bool supported);

}  // namespace tfjob
