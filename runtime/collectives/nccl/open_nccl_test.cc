#include <gtest/gtest.h>

#include "runtime/collectives/nccl/fake_nccl.h"
#include "runtime/collectives/nccl/nccl_api.h"

namespace tfjob::collectives::nccl {
namespace {

TEST(OpenNccl, AMachineWithoutTheLibraryIsToldWhatToInstall) {
  EXPECT_EQ(OpenNccl("libnccl-that-does-not-exist.so.2").status(),
            FailedPrecondition("no NCCL, which strategy.implementation nccl needs: "
                               "libnccl-that-does-not-exist.so.2: cannot open shared object file: "
                               "No such file or directory; install NCCL 2.18 or newer for CUDA 13 "
                               "(libnccl2), and name its folder in LD_LIBRARY_PATH"));
  EXPECT_EQ(OpenNccl("libm.so.6").status(),
            FailedPrecondition("NCCL (libm.so.6) lacks ncclGetVersion, which this program needs: "
                               "install NCCL 2.18 or newer for CUDA 13 (libnccl2), and name its "
                               "folder in LD_LIBRARY_PATH"));
}

// The old library also lacks functions, but the message must name its version.
TEST(OpenNccl, AnOldLibraryIsNamedWithBothVersions) {
  EXPECT_EQ(OpenNccl("runtime/collectives/nccl/libold_nccl.so").status(),
            FailedPrecondition("NCCL (runtime/collectives/nccl/libold_nccl.so) is version 2.11.4, "
                               "but this program needs 2.18.0 or newer: install NCCL 2.18 or newer "
                               "for CUDA 13 (libnccl2), and name its folder in LD_LIBRARY_PATH"));
}

TEST(OpenNccl, VersionsHaveTwoForms) {
  EXPECT_EQ(NcclVersionText(22809), "2.28.9");
  EXPECT_EQ(NcclVersionText(2804), "2.8.4");
}

TEST(OpenNccl, ErrorsOfOtherRanksAreUnavailable) {
  const NcclApi& nccl = FakeNccl({});
  EXPECT_EQ(ToStatus(nccl, kNcclSuccess, "ncclSend"), OkStatus());
  EXPECT_EQ(ToStatus(nccl, kNcclInvalidArgument, "ncclSend"),
            Internal("ncclSend: invalid argument"));
  for (const NcclResult result : {kNcclRemoteError, kNcclSystemError}) {
    EXPECT_EQ(ToStatus(nccl, result, "ncclSend").code(), StatusCode::kUnavailable);
  }
}

}  // namespace
}  // namespace tfjob::collectives::nccl
