#include "runtime/wire/hello.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "runtime/base/env.h"

namespace tfjob::wire {
namespace {

constexpr char kHex[] = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

JobKey Key(char last = 'f') {
  std::string hex = kHex;
  hex.back() = last;
  return *JobKey::Parse(hex);
}

// Both sides of a hello, and every message that they exchanged.
struct Exchange {
  explicit Exchange(const JobKey* caller_key, const JobKey* listener_key,
                    Purpose purpose = Purpose::kGrpc, Status denial = OkStatus())
      : verdict(std::move(denial)),
        caller(caller_key, "worker 1", purpose, NewNonce()),
        listener(listener_key, &listener_claims, &check, NewNonce()) {}

  // Passes the messages of `output` to `to`. Returns OK, or the error for the first message that
  // `to` does not accept.
  template <typename To>
  static Status Deliver(const std::string& output, To& to) {
    for (std::string_view left = output; !left.empty();) {
      const size_t taken = std::min(left.size(), to.wanted());
      if (taken == 0) return Internal("bytes after the end of the hello");
      RETURN_IF_ERROR(to.Feed(left.substr(0, taken)));
      left.remove_prefix(taken);
    }
    return OkStatus();
  }

  // Runs the hello until it succeeds or one side aborts it. Afterwards, caller_status and
  // listener_status contain the result.
  void Run() {
    for (int turn = 0; turn < 4 && caller_status.ok() && !caller.done(); ++turn) {
      sent.push_back(caller.TakeOutput());
      if (listener_status.ok()) listener_status = Deliver(sent.back(), listener);
      answered.push_back(listener.TakeOutput());
      caller_status = Deliver(answered.back(), caller);
    }
  }

  Status verdict;
  std::string listener_claims = "ps 0 of job-a";
  std::string seen_claims;
  ListenerHello::Check check = [this](std::string_view claims, Purpose) {
    seen_claims = claims;
    return verdict;
  };
  CallerHello caller;
  ListenerHello listener;
  Status caller_status, listener_status;
  std::vector<std::string> sent, answered;
};

TEST(JobKey, IsSixtyFourLowerCaseHexDigits) {
  EXPECT_TRUE(JobKey::Parse(kHex).ok());
  EXPECT_EQ(Message(JobKey::Parse("abc").status()),
            "expected 64 hexadecimal digits, got 3 characters");
  std::string upper = kHex;
  upper[21] = 'A';
  EXPECT_EQ(Message(JobKey::Parse(upper).status()),
            "expected 64 hexadecimal digits (0-9, a-f), got another character at position 21");
  EXPECT_FALSE(JobKey::Parse(std::string(kHex) + "\n").ok());
}

TEST(JobKey, SignsAsRfc4231) {
  // Test case 2 of RFC 4231 has the key "Jefe", which HMAC pads with zeros.
  std::string hex(64, '0');
  hex.replace(0, 8, "4a656665");
  const Proof proof = JobKey::Parse(hex)->Sign({"what do ya want ", "for nothing?"});
  EXPECT_EQ(proof[0], 0x5b);
  EXPECT_EQ(proof[1], 0xdc);
  EXPECT_EQ(proof[31], 0x43);
  EXPECT_TRUE(Equal(proof, {reinterpret_cast<const char*>(proof.data()), proof.size()}));
  EXPECT_FALSE(Equal(proof, ""));
}

TEST(JobKey, IsTakenOutOfTheEnvironment) {
  ASSERT_EQ(setenv("TFJOB_KEY", kHex, 1), 0);
  const char* memory = getenv("TFJOB_KEY");
  const auto key = TakeJobKey();
  ASSERT_TRUE(key.ok() && key->has_value()) << key.status();
  EXPECT_TRUE((*key)->Sign({"x"}) == Key().Sign({"x"}));
  EXPECT_EQ(getenv("TFJOB_KEY"), nullptr);
  EXPECT_EQ(std::string(memory), "");
  EXPECT_EQ(*TakeJobKey(), std::nullopt);
  ASSERT_EQ(setenv("TFJOB_KEY", "secret", 1), 0);
  const Status bad = TakeJobKey().status();
  EXPECT_EQ(bad.code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Message(bad), "TFJOB_KEY: expected 64 hexadecimal digits, got 6 characters");
  EXPECT_EQ(getenv("TFJOB_KEY"), nullptr);
}

TEST(Hello, ProvesTheKeyBothWays) {
  const JobKey key = Key();
  Exchange exchange(&key, &key);
  exchange.Run();
  EXPECT_EQ(exchange.caller_status, OkStatus());
  EXPECT_EQ(exchange.listener_status, OkStatus());
  EXPECT_TRUE(exchange.caller.done());
  EXPECT_TRUE(exchange.listener.done());
  EXPECT_EQ(exchange.caller.peer_claims(), "ps 0 of job-a");
  EXPECT_EQ(exchange.listener.peer_claims(), "worker 1");
  EXPECT_EQ(exchange.seen_claims, "worker 1");
  EXPECT_EQ(exchange.listener.purpose(), Purpose::kGrpc);
  EXPECT_EQ(exchange.caller.wanted(), 0u);
  // Only the listener's last message reveals the job to the caller.
  ASSERT_EQ(exchange.answered.size(), 2u);
  EXPECT_EQ(exchange.answered[0].find("job-a"), std::string::npos);
}

TEST(Hello, WorksByteByByte) {
  const JobKey key = Key();
  Exchange exchange(&key, &key);
  for (int turn = 0; turn < 2; ++turn) {
    for (char byte : exchange.caller.TakeOutput()) {
      ASSERT_EQ(exchange.listener.Feed({&byte, 1}), OkStatus());
    }
    for (char byte : exchange.listener.TakeOutput()) {
      ASSERT_EQ(exchange.caller.Feed({&byte, 1}), OkStatus());
    }
  }
  EXPECT_TRUE(exchange.caller.done() && exchange.listener.done());
}

TEST(Hello, WithoutKeysOnlyNames) {
  Exchange exchange(nullptr, nullptr);
  exchange.Run();
  EXPECT_TRUE(exchange.caller.done() && exchange.listener.done());
  EXPECT_EQ(exchange.listener.peer_claims(), "worker 1");
}

TEST(Hello, NeedsAKeyOnBothSidesOrOnNone) {
  const JobKey key = Key();
  Exchange without(nullptr, &key);
  without.Run();
  EXPECT_EQ(without.caller_status.code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(Message(without.caller_status),
            "refused: the task has a job key and this one has none: set TFJOB_KEY to the same "
            "value in all tasks of a job");
  EXPECT_EQ(without.listener_status, Unauthenticated("the peer has no job key (TFJOB_KEY)"));
  EXPECT_EQ(without.answered, std::vector<std::string>{std::string("TFJH\1\5\1\0\3", 9)});

  Exchange with(&key, nullptr);
  with.Run();
  EXPECT_EQ(Message(with.caller_status),
            "refused: this task has a job key and the peer has none: set TFJOB_KEY to the same "
            "value in all tasks of a job");
  EXPECT_FALSE(with.listener.done());
  EXPECT_EQ(with.sent.size(), 1u);  // the caller's claims are not revealed
}

TEST(Hello, RefusesAnotherKeyWithoutAWordAboutTheJob) {
  const JobKey key = Key(), other = Key('e');
  Exchange exchange(&other, &key);
  exchange.Run();
  EXPECT_EQ(exchange.caller_status.code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(exchange.listener_status.code(), StatusCode::kUnauthenticated);
  EXPECT_EQ(exchange.answered.back(), std::string("TFJH\1\5\1\0\4", 9));
  EXPECT_EQ(exchange.seen_claims, "");
}

TEST(Hello, DoesNotTakeWhatWasSaidBefore) {
  const JobKey key = Key();
  Exchange earlier(&key, &key);
  earlier.Run();
  Exchange replayed(&key, &key);
  EXPECT_EQ(Exchange::Deliver(earlier.sent[0], replayed.listener), OkStatus());
  EXPECT_EQ(Exchange::Deliver(earlier.sent[1], replayed.listener).code(),
            StatusCode::kUnauthenticated);
  // A caller accepts neither the welcome of an earlier hello nor a reflection of its own proof.
  Exchange reflected(&key, &key);
  (void)reflected.caller.TakeOutput();
  EXPECT_EQ(Exchange::Deliver(earlier.answered[0], reflected.caller), OkStatus());
  EXPECT_EQ(Exchange::Deliver(earlier.answered[1], reflected.caller).code(),
            StatusCode::kFailedPrecondition);
  Exchange mirrored(&key, &key);
  (void)mirrored.caller.TakeOutput();
  EXPECT_EQ(Exchange::Deliver(earlier.answered[0], mirrored.caller), OkStatus());
  std::string own = mirrored.caller.TakeOutput();
  own[5] = 4;  // the type: welcome
  EXPECT_EQ(Exchange::Deliver(own, mirrored.caller).code(), StatusCode::kFailedPrecondition);
}

// Every bit of the hello, including the flags, the purpose and the claims, is either covered by a
// proof or has only one valid value.
TEST(Hello, NoBitCanBeChangedOnTheWay) {
  const JobKey key = Key();
  Exchange plain(&key, &key);
  plain.Run();
  size_t bytes = 0;
  for (size_t m = 0; m < 2; ++m) bytes += plain.sent[m].size() + plain.answered[m].size();
  for (size_t bit = 0; bit < 8 * bytes; ++bit) {
    Exchange exchange(&key, &key);
    size_t begin = 0;  // the offset of the next message
    const auto forge = [&](std::string message) {
      const size_t at = bit / 8 - begin;
      if (bit / 8 >= begin && at < message.size()) message[at] ^= static_cast<char>(1 << bit % 8);
      begin += message.size();
      return message;
    };
    Status caller, listener;
    for (int turn = 0; turn < 2 && caller.ok() && listener.ok(); ++turn) {
      listener = Exchange::Deliver(forge(exchange.caller.TakeOutput()), exchange.listener);
      caller = Exchange::Deliver(forge(exchange.listener.TakeOutput()), exchange.caller);
    }
    EXPECT_FALSE(exchange.caller.done()) << "bit " << bit;
  }
}

TEST(Hello, DeniesInDetailOnlyAfterTheProof) {
  const JobKey key = Key();
  Exchange exchange(&key, &key, Purpose::kGrpc, FailedPrecondition("refused: attempt 2"));
  exchange.Run();
  EXPECT_EQ(exchange.caller_status, FailedPrecondition("refused: attempt 2"));
  EXPECT_EQ(exchange.listener_status, FailedPrecondition("refused: attempt 2"));
  Exchange unknown(&key, &key, static_cast<Purpose>(3));
  unknown.Run();
  EXPECT_EQ(unknown.caller_status,
            Unimplemented("refused: this task takes no connections for purpose 3"));
  EXPECT_EQ(unknown.seen_claims, "");
}

TEST(Hello, TellsTheListenerThePurpose) {
  const JobKey key = Key();
  Exchange data(&key, &key, Purpose::kData);
  data.Run();
  EXPECT_EQ(data.caller_status, OkStatus());
  EXPECT_TRUE(data.listener.done());
  EXPECT_EQ(data.listener.purpose(), Purpose::kData);
  EXPECT_EQ(data.seen_claims, "worker 1");
}

Status AfterBytes(std::string_view bytes, std::string* answer = nullptr) {
  const JobKey key = Key();
  Exchange exchange(&key, &key);
  const Status status = Exchange::Deliver(std::string(bytes), exchange.listener);
  if (answer != nullptr) *answer = exchange.listener.TakeOutput();
  return status;
}

TEST(Hello, SaysNothingToWhoIsNoPeer) {
  std::string answer;
  EXPECT_EQ(Message(AfterBytes("GET / HTTP/1.1\r\n\r\n", &answer)),
            "not a TFJob peer (got \"GET / HT\")");
  EXPECT_EQ(answer, "");
  EXPECT_EQ(Message(AfterBytes("\x16\x03\x01\n", &answer)),
            "not a TFJob peer (got \"\\x16\\x03\\x01\\n\")");
  EXPECT_EQ(answer, "");
  EXPECT_EQ(AfterBytes(std::string("TFJH\1\1\xFF\xFF", 8)).code(), StatusCode::kDataLoss);
  EXPECT_EQ(AfterBytes(std::string("TFJH\1\3\0\0", 8)).code(), StatusCode::kDataLoss);
}

TEST(Hello, NamesTheOtherVersion) {
  std::string answer;
  EXPECT_EQ(Message(AfterBytes("TFJH\2", &answer)),
            "refused: the peer speaks version 2 of the hello, this task version 1: run the same "
            "version of the trainer in all tasks");
  EXPECT_EQ(answer, std::string("TFJH\1\5\1\0\2", 9));
}

TEST(Hello, ACallerTakesNothingFromAStranger) {
  for (const std::string& bytes :
       {std::string("HTTP/1.1 400"), std::string("TFJH\1\5\0\0", 8), std::string("TFJH\1\4\0\0", 8),
        std::string("TFJH\1\6\1\0\0", 9)}) {
    CallerHello caller(nullptr, "", Purpose::kGrpc, NewNonce());
    EXPECT_EQ(Exchange::Deliver(bytes, caller).code(), StatusCode::kDataLoss) << bytes;
    EXPECT_FALSE(caller.done());
  }
}

}  // namespace
}  // namespace tfjob::wire
