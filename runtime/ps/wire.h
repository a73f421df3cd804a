// The frames of the service "parameters" (rpc/frame.h): what type, flags, sequence, step and value
// mean. Segments name shards by their place in Place(definition, servers); `offset` is where in the
// shard their bytes belong. A shard's bytes come in order, in as many segments and frames as they take
// (rpc/frame.h: frames stay small, since one that arrives is the sign of life). D: a data frame, under
// credits and in order; M: a message, which may overtake data.
#pragma once

#include <cstdint>

namespace tfjob::ps::wire {

enum Type : uint16_t {
  // Requests carry a number in `sequence`, which their answer repeats.
  kQuery = 1,  // M: what state are you in? → kState
  kState =
      2,  // M: value epoch, step global step, flags kReady kDefined; body: JSON (Service::State)
  kDefine = 3,       // M: the chief; value the new epoch; body: an Assignment → kReply
  kFill = 4,         // D: the chief; a segment: shard, flags the slot (0 the value itself)
  kFilled = 5,       // D: the chief; value epoch, step; one segment: the ledger → kReply
  kReply = 6,        // M: value a status code; body its message
  kSnapshot = 7,     // M → kShard…, kSnapshotEnd
  kShard = 8,        // D: segments as in kFill; a shard and its slots as of one moment
  kSnapshotEnd = 9,  // D: step, value epoch; one segment: the ledger
  kHold = 10,        // M: the chief, to ps 0: commit nothing → kReply when all stand at one step
  kRelease = 11,     // M: the chief, to ps 0 → kReply
  kLeave = 12,       // M: this task contributes nothing more → kReply
  kFinish = 13,      // M: the chief: end → kReply, and kFinished to everybody
  kFinished = 14,    // D: after all else
  kRenew = 15,       // M: the chief, to ps 0, while it copies: the hold lasts on; no answer

  // A contribution: sequence, step of the values it was computed from, value epoch. Every shard of
  // the server comes once: all its bytes, or one empty segment when there is nothing for it. kFirst on
  // the first frame.
  kPush = 20,  // D
  kPull = 21,  // M: as a push of nothing
  // The answer, in one or more frames; the last has kLast, the step, and value the staleness.
  kValues = 22,   // D: segments: shards' fresh values
  kRefused = 23,  // M: sequence; value a status code; body its message; step the server's epoch

  // Between ps 0 and the other servers: body as synchronizer.cc writes it.
  kParticipant = 30,  // M: to ps 0
  kCoordinator = 31,  // M: from ps 0
};

enum Flag : uint16_t {
  kFirst = 1,
  kLast = 2,
  kDropped = 4,
  kAgain = 8,
  kReady = 16,
  kDefined = 32,
};

}  // namespace tfjob::ps::wire
