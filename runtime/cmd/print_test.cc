#include "runtime/cmd/print.h"

#include <gtest/gtest.h>

namespace tfjob::cmd {
namespace {

TEST(PrintPlacement, NamesEveryShardItsServerAndItsBytes) {
  ps::Definition definition{.variables = {{.name = "dense/kernel", .shape = {6, 10}},
                                          {.name = "dense/bias", .shape = {10}},
                                          {.name = "steps", .update = ps::Update::kAssign}},
                            .max_shard_bytes = 120};
  definition.optimizer = optimizer::Optimizer::Default(optimizer::Kind::kAdam);
  EXPECT_EQ(PrintPlacement(definition, 2),
            "shard  server  bytes  of\n"
            "0  ps 0  120  dense/kernel  bytes 0 to 120\n"
            "1  ps 1  120  dense/kernel  bytes 120 to 240\n"
            "2  ps 0  40  dense/bias  bytes 0 to 40\n"
            "3  ps 1  4  steps  bytes 0 to 4\n"
            "ps 0 holds 2 shards, 480 bytes with 2 optimizer slots\n"
            "ps 1 holds 2 shards, 364 bytes with 2 optimizer slots\n");
}

}  // namespace
}  // namespace tfjob::cmd
