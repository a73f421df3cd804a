// Tests what a parameter server reports while it has no state, or while no training task is
// connected.
#include <gtest/gtest.h>

#include "runtime/ps/test_tasks.h"
#include "runtime/rpc/pipe_connector.h"

namespace tfjob::ps {
namespace {

TEST(Waits, AServerThatServesNobodySaysForWhom) {
  rpc::PipeConnector connector;
  Events events;
  std::unique_ptr<ParameterServer> ps = *ParameterServer::Create({.identity = Task("ps", 0),
                                                                  .on_event = events.sink(),
                                                                  .connector = &connector,
                                                                  .report_every = 100ms});
  connector.Listen("here", kParameterService, Task("ps", 0), *ps);
  EXPECT_EQ(events.Message(state::PeerEvent::Kind::kWaiting, "chief"),
            "ps 0 is uninitialised: it waits for the chief to fill it");
  const Definition definition = TwoVariables();
  {
    Trainer chief(definition);
    ASSERT_EQ(chief.Join({.servers = {"here"},
                          .identity = Task("chief", 0),
                          .chief = true,
                          .provide_state = [&] { return InitialState(definition, 3); },
                          .patience = 30s,
                          .connector = &connector}),
              OkStatus());
    // Train for several report intervals. During this time, the server must not report a wait.
    const auto end = std::chrono::steady_clock::now() + 1s;
    while (std::chrono::steady_clock::now() < end) ASSERT_EQ(chief.Train(), OkStatus());
    EXPECT_FALSE(events.Said("waits for a training task"));
  }
  const std::string wait = events.Message(state::PeerEvent::Kind::kWaiting, "chief 0");
  EXPECT_TRUE(wait.starts_with("ps 0 is at step ")) << wait;
  EXPECT_NE(wait.find(" and waits for a training task; gone: chief 0 ("), std::string::npos)
      << wait;
  connector.Close("here");
}

}  // namespace
}  // namespace tfjob::ps
