// Checks at start that the processor supports the instructions that the program was built for. If
// it does not, a program that links this library prints a message and exits with code 1 instead of
// dying of SIGILL. The check runs before anything else in the program, even before the initializers
// of static variables.
#pragma once

namespace tfjob {

// Exits the process with an error message unless `supported` is true. Called automatically at
// start; async-signal-safe.
void RequireProcessor(bool supported);

}  // namespace tfjob
