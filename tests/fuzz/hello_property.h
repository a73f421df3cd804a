// Checks properties that must hold for both sides of a hello, for arbitrary bytes from the other
// side.
#pragma once

#include <string_view>

namespace tfjob::fuzz {

// Each function reads the bytes and aborts the process (ENFORCE) if a property is violated. The
// bytes arrive in pieces of `piece` bytes (at least 1), as they may over a network.

// Checks that a listener never reads more than one message at a time, sends nothing to a stranger,
// does not welcome a caller without the listener's key, and sends at most two messages.
void CheckListenerProperties(std::string_view bytes, bool keyed, size_t piece);
// Checks that a caller never reads more than one message at a time, and does not complete its hello
// with a listener that does not have the caller's key.
void CheckCallerProperties(std::string_view bytes, bool keyed, size_t piece);

}  // namespace tfjob::fuzz
