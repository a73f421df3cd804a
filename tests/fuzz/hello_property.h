// Checks properties that must hold for arbitrary bytes that reach either side of a hello.
#pragma once

#include <string_view>

namespace tfjob::fuzz {

// Each function reads the bytes and aborts the process (ENFORCE) if a property is violated. The
// bytes arrive in pieces of `piece` bytes (at least 1), as they may over a network.

// A listener never takes more than a message, says nothing to a stranger, does not welcome a caller
// that has not its key, and does not send more than two messages.
void CheckListenerProperties(std::string_view bytes, bool keyed, size_t piece);
// A caller never takes more than a message, and does not end its hello well with a listener that
// has not its key.
void CheckCallerProperties(std::string_view bytes, bool keyed, size_t piece);

}  // namespace tfjob::fuzz
