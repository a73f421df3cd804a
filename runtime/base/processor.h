// The processor that a program is built for. A program that links this is ended on any other one with a message and code 1
// rather than SIGILL, before anything else of it runs, its static variables' initializers among them.
#pragma once

namespace tfjob {

// Ends the process unless `supported`. Called by itself at start; async-signal-safe.
void RequireProcessor(bool supported);

}  // namespace tfjob
