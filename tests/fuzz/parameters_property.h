// Checks properties that must hold when arbitrary bytes reach a parameter server.
#pragma once

#include <string_view>

namespace tfjob::fuzz {

// Each function reads the bytes and aborts the process (ENFORCE) if a property is violated. The
// bytes must not cause a crash or a hang, and the process must not allocate memory merely because
// they claim a size.

// Checks an assignment that is accepted:
//   - The assignment reads back as it was written.
//   - Its shards cover every byte of every variable once.
//   - A store made from the assignment rejects all bytes outside it.
void CheckAssignmentProperties(std::string_view text);
// Sends these frames to a server, as peers of all roles. Checks that the server still reports a
// valid state: a size within its limit and a step that is not negative. Each frame consists of one
// byte for the sender (low two bits: 0 chief, 1 worker, 2 ps, 3 evaluator), two bytes for the
// length (little-endian), and the frame itself in wire format. Consecutive frames of one sender
// share a connection.
void CheckFrameProperties(std::string_view bytes);
// Checks that, if a store accepts a ledger, another store accepts the ledger that the first one
// writes, and writes the same ledger.
void CheckLedgerProperties(std::string_view text);

}  // namespace tfjob::fuzz
