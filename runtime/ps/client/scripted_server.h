// Implements a server that follows a script, for tests of the client. Private to this package.
#pragma once

#include <atomic>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/ps/definition.h"
#include "runtime/ps/test_frames.h"
#include "runtime/ps/wire.h"
#include "runtime/rpc/transport.h"

namespace tfjob::ps {

struct Answer {
  rpc::FrameHeader header;
  std::vector<Bytes> parts;
};

// Answers a query with `state` and `body`; without `body` if the query requests a brief answer and
// `may_be_brief` is set. Answers other requests with the next answers in `script`, or with an empty
// reply if the script has none. Tests change the members only while no request is in progress.
class ScriptedServer : public rpc::StreamHandler {
 public:
  rpc::FrameHeader state{.type = wire::kState, .flags = wire::kReady, .step = 3, .value = 7};
  std::string body;
  bool may_be_brief = true;  // false: behaves like a server that predates the flag
  std::map<uint16_t, std::deque<std::vector<Answer>>> script;  // by type of request
  size_t contribution = 28;                                    // bytes of a step's gradients
  std::vector<std::string> heard;                              // "push first step=3: 0@0+24 …"
  std::string text;  // payload of the last frame that was heard
  // If set, this late answer to the last contribution is sent after the next answer to a query.
  std::optional<Answer> late;
  // If set, queries are answered only once this is true.
  const std::atomic<bool>* answers_queries = nullptr;
  // If set, becomes true when a request for values arrives.
  std::atomic<bool>* pulled = nullptr;

  Status Admit(const rpc::Identity&) override { return OkStatus(); }
  void Serve(const rpc::Identity&, const std::string&, rpc::Transport& transport) override {
    rpc::IncomingFrame frame;
    while (transport.Read(frame).ok()) {
      const rpc::FrameHeader& request = frame.header;
      if (request.type >= 0xFF00) continue;
      if (request.type == wire::kQuery) {
        if (request.sequence == 0) continue;  // a poll, which needs no answer
        const bool brief = (request.flags & wire::kBrief) != 0;
        heard.push_back(brief ? "query brief" : "query");
        while (answers_queries != nullptr && !*answers_queries) std::this_thread::sleep_for(1ms);
        Send(transport, request, {state, {{.bytes = brief && may_be_brief ? "" : body}}});
        if (late) Send(transport, {.sequence = push_}, *std::exchange(late, std::nullopt));
      } else if (request.type == wire::kRegister) {
        Send(transport, request, {{.type = wire::kRegistered, .step = 1}, {}});
      } else if (request.type != wire::kAnnounce) {
        for (const Answer& answer : Hear(frame)) Send(transport, request, answer);
      }
    }
  }

 private:
  std::vector<Answer> Hear(rpc::IncomingFrame& frame) {
    static const std::map<uint16_t, std::string> kNames = {
        {wire::kDefine, "define"},      {wire::kFill, "fill"},
        {wire::kFilled, "filled"},      {wire::kPull, "pull"},
        {wire::kPush, "push"},          {wire::kSnapshot, "snapshot"},
        {wire::kPullRows, "pull rows"}, {wire::kLeave, "leave"},
        {wire::kFinish, "finish"},      {wire::kReadCopy, "read copy"},
        {wire::kDropCopy, "drop copy"}};
    const uint16_t type = frame.header.type;
    if (type == wire::kPush) push_ = frame.header.sequence;
    if (type == wire::kPull && pulled != nullptr) *pulled = true;
    const bool first = (frame.header.flags & wire::kFirst) != 0;
    std::string line = StrCat(kNames.at(type), first ? " first" : "", " step=", frame.header.step);
    const bool tensors = type == wire::kPush || type == wire::kFill;
    for (const rpc::SegmentInfo& part : frame.segments) {
      if (tensors)
        line += StrCat(" ", part.index, ".", part.flags, "@", part.offset, "+", part.length);
    }
    heard.push_back(line);
    text = frame.ReadString(frame.remaining());
    if (type == wire::kFill || type == wire::kDropCopy) return {};
    if (type == wire::kPush && (received_ += text.size()) < contribution) return {};
    received_ = 0;
    std::deque<std::vector<Answer>>& answers = script[type];
    if (answers.empty()) return {{.header = {.type = wire::kReply}, .parts = {}}};
    std::vector<Answer> next = std::move(answers.front());
    answers.pop_front();
    return next;
  }
  static void Send(rpc::Transport& transport, const rpc::FrameHeader& request,
                   const Answer& answer) {
    rpc::OutgoingFrame frame = MakeFrame(answer.header, answer.parts);
    frame.header.sequence = request.sequence;
    // An error means that the client has closed the stream, which the next Read reports.
    transport.Write(frame).IgnoreError();
  }

  size_t received_ = 0;
  uint64_t push_ = 0;  // sequence of the last contribution
};

}  // namespace tfjob::ps
