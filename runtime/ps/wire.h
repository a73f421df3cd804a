// Defines the frames of the service "parameters" (rpc/frame.h): the meaning of type, flags,
// sequence, step and value.
//
// A segment's `index` is the index of its shard in Place(definition, servers); its `offset` is the
// position of its bytes in the shard. A shard's bytes are sent in order, in as many segments and
// frames as they need. Frames stay small, because each arriving frame shows that the peer is alive
// (rpc/frame.h).
//
//   D  a data frame: subject to credits, delivered in order
//   M  a message: may overtake data
//   →  the types of the frames that answer this one
#pragma once

#include <cstdint>

namespace tfjob::ps::wire {

enum Type : uint16_t {
  // A request carries a number in `sequence`; its answer repeats the number. M: requests the
  // server's state → kState. With kBrief, the answer has no body; older servers send the body
  // anyway.
  kQuery = 1,
  // M: value: epoch; step: global step; flags: kReady, kEnding; body: JSON. Also sent without a
  // request, with sequence 0, when a task is asked to stop.
  kState = 2,
  kDefine = 3,  // M: chief; value: the new epoch; body: an Assignment → kReply
  kFill = 4,    // D: chief; per segment: a shard; flags: the slot (0: the value itself)
  kFilled = 5,  // D: chief; value: epoch; step: of the state; one segment: the ledger → kReply
  kReply = 6,   // M: value: a status code; body: its message
  // M: requests a copy of the state → kShard…, kSnapshotEnd. The server keeps the shards of tables
  // as of the same moment, for kReadCopy, until kDropCopy arrives or the connection is closed. A
  // kDefine may drop copies of earlier states if the server lacks memory.
  kSnapshot = 7,
  // D: segments as in kFill; a shard and its slots as of one moment; never a table's shard
  kShard = 8,
  kSnapshotEnd = 9,  // D: value: epoch; step: of the state; one segment: the ledger
  kHold = 10,        // M: chief to ps 0: stop committing → kReply once all servers are at one step
  // M: chief to ps 0: resume committing → kReply, with an error if the hold had already ended. With
  // kEnding, commits stay suspended.
  kRelease = 11,
  // M: this task will send no more contributions → kReply. With kEnding: because it was asked to
  // stop.
  kLeave = 12,
  kFinish = 13,    // M: chief: the job is over → kReply, and kFinished to every peer
  kFinished = 14,  // D: the job is over; follows all other frames
  kRenew = 15,     // M: chief to ps 0, during a copy: renew the hold; no answer
  // A training task must register its process with ps 0 before its first contribution on a
  // connection. `step` is the process's incarnation, or 0 if it has none. `value` is the highest
  // "incarnation" in the kState bodies of the other servers, each of which is the lowest that the
  // server accepts.
  kRegister = 16,    // M: to ps 0 → kRegistered, or kReply with an error
  kRegistered = 17,  // M: step: the incarnation; value: how many batches the task has drawn
  kAnnounce = 18,    // M: to the other servers; value: the registered incarnation; no answer
  kDropCopy = 19,    // M: chief; value: as in kReadCopy; no answer

  // A contribution. `step`, which is not negative, is the step of the values from which it was
  // computed; `value` is the epoch. Every shard of the server is sent once: all its bytes, or one
  // empty segment if there is no update for it. If the variable's gradient arrives as rows
  // (Definition::row_gradients), a shard's bytes are n indices, followed by the n rows; an empty
  // segment with the flag kRowCount, whose offset is n, precedes them. The indices are those of the
  // rows in the variable (int64, in ascending order). The offsets of both indices and rows are
  // relative to the first index. The first frame has the flag kFirst. If sent to ps 0, this frame
  // may have an empty segment with the index kDrawn. Its offset is the number of batches that the
  // task has drawn, including the batch from which this contribution was computed.
  kPush = 20,  // D
  kPull = 21,  // M: like kPush, but without updates
  // The answer to kPush and kPull, in one or more frames: all shards but those of tables. The last
  // frame has the flag kLast; its `step` is the step of the values, and its `value` is the
  // staleness or, from ps 0 in synchronous mode, how many of the task's batches the state counts as
  // drawn. The task must draw all later batches again.
  kValues = 22,   // D: segments: fresh values of shards
  kRefused = 23,  // M: the answer instead of kValues; value: a status code; body: its message
  kTaken = 24,    // M: chief to a server that is stopping: its state was copied; no answer
  // M: training task: the run has failed; body: the reason → kReply, and kFailed to every training
  // task, including tasks that connect later. The server exits once the chief has sent kFail.
  kFail = 25,
  kFailed = 26,  // M: the run has failed; body: the reason
  // Reads rows of tables (Definition::tables); `value`: the epoch. The segments are as in kPush,
  // but without values after the indices, and only for shards that contain requested rows, in
  // ascending order. The first frame has the flag kFirst, the last one kLast. The answer is
  // kValues, whose segments contain the rows in the same order; their offsets are relative to the
  // first requested row. The request does not change the server's state, so the server need not
  // recognise a repeated request.
  kPullRows = 27,  // D
  // M: chief: requests bytes of a table as of an earlier kSnapshot on this connection; value: the
  // sequence of that kSnapshot; body: a CopyPiece, whose length is at most rpc::kFrameTargetBytes →
  // kCopied, or kReply with an error.
  kReadCopy = 28,
  kCopied = 29,  // D: one segment, as in kFill

  // M: chief: sets the learning rate of later updates; step: the number of updates when it was set;
  // value: its bits; no answer. Sent ahead of the chief's next contribution: in synchronous mode to
  // ps 0, whose commits contain the rate; in asynchronous mode to every server.
  kSetRate = 32,

  // Between ps 0 and the other servers. The body is a message of protocol/messages.h.
  kParticipant = 30,  // M: to ps 0
  kCoordinator = 31,  // M: from ps 0
};

// The bytes of a shard that kReadCopy requests. Little-endian.
struct CopyPiece {
  uint32_t shard = 0;
  uint32_t slot = 0;  // 0: the value itself
  uint64_t offset = 0;
  uint64_t length = 0;
};

inline constexpr uint32_t kDrawn = 0xFFFFFFFF;

// A flag of segments in kPush and kPullRows.
inline constexpr uint32_t kRowCount = 1;

enum Flag : uint16_t {
  kFirst = 1,
  kLast = 2,
  kDropped = 4,
  kAgain = 8,
  kReady = 16,
  kEnding = 32,
  kBrief = 64,
};

}  // namespace tfjob::ps::wire
