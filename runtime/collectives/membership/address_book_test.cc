#include "runtime/collectives/membership/address_book.h"

#include <gtest/gtest.h>

namespace tfjob::collectives {
namespace {

using Warnings = std::vector<std::string>;

TEST(AddressBook, PrefersTheAddressThatATaskHasPublished) {
  AddressBook book(
      std::vector<Member>{{.task = "chief 0", .address = "old:1"}, {.task = "worker 0"}});
  EXPECT_EQ(book.Of("chief 0"), "old:1");
  EXPECT_EQ(book.Of("worker 0"), "");
  EXPECT_EQ(book.Note({{.task = "worker 0", .address = "w0:1"}}), Warnings());
  EXPECT_EQ(book.Of("worker 0"), "w0:1");
  EXPECT_EQ(book.Note({{.task = "chief 0", .address = "new:1"}}),
            Warnings{"chief 0 has joined with the address new:1, which replaces the address old:1 "
                     "known so far"});
  EXPECT_EQ(book.Of("chief 0"), "new:1");
  EXPECT_EQ(book.Note({{.task = "chief 0", .address = "new:1"}}), Warnings());
}

TEST(AddressBook, IgnoresEmptyAddressesAndTasksThatMayNotTrain) {
  AddressBook book(std::vector<Member>{{.task = "chief 0", .address = "c:1"}});
  EXPECT_EQ(book.Note({{.task = "chief 0"}, {.task = "worker 9", .address = "w9:1"}}), Warnings());
  EXPECT_EQ(book.Of("chief 0"), "c:1");
  EXPECT_EQ(book.Of("worker 9"), "");
}

}  // namespace
}  // namespace tfjob::collectives
