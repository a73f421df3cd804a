#include "runtime/io/hdf5_file.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "runtime/base/file.h"
#include "runtime/io/memory_file.h"

namespace tfjob::io {
namespace {

std::string Path(const std::string& name) {
  return StrCat(testing::TempDir(), "/", name);
}

NamedTensors Some() {
  return {{"layers/dense/vars/0", Tensor::Of<float>({2, 3}, {1, 2, 3, 4, 5, 6})},
          {"layers/dense/vars/1", Tensor::Of<double>({2}, {0.5, -0.5})},
          {"optimizer/vars/0", Tensor::Scalar<int64_t>(7)},
          {"bytes", Tensor::Of<uint8_t>({3}, {0, 128, 255})},
          {"empty", Tensor(DType::kFloat32, Shape({0, 2}))},
          {"words", Tensor::Of<int32_t>({2}, {-1, 1})}};
}

std::string Made() {
  const Json attributes = {{"", {{"config", std::string(100'000, 'x')}}},
                           {"layers/dense/vars", {{"name", "dénse"}}},
                           {"names", {{"list", {"a", "b/c"}}, {"none", Json::array()}}}};
  StatusOr<MemoryFile> made = MakeHdf5("some.h5", Some(), attributes);
  EXPECT_TRUE(made.ok()) << made.status();
  return std::string(*made->Map());
}

StatusOr<std::unique_ptr<Hdf5File>> OpenBytes(const std::string& bytes) {
  const std::string path = Path("some.h5");
  EXPECT_TRUE(WriteFileAtomically(path, bytes).ok());
  return Hdf5File::Open(path);
}

TEST(Hdf5, WhatIsWrittenIsReadBack) {
  const std::string bytes = Made();
  EXPECT_TRUE(LooksLikeHdf5(bytes));
  EXPECT_EQ(bytes, Made()) << "equal tensors give equal files";
  const auto file = OpenBytes(bytes);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_EQ((*file)->datasets().size(), Some().size());
  for (const auto& [name, expected] : Some()) {
    const StatusOr<Tensor> got = (*file)->Read(name);
    ASSERT_TRUE(got.ok()) << got.status();
    EXPECT_EQ(got->dtype(), expected.dtype()) << name;
    EXPECT_EQ(got->shape(), expected.shape()) << name;
    EXPECT_TRUE(std::ranges::equal(got->bytes(), expected.bytes())) << name;
  }
  EXPECT_EQ((*file)->Text("", "config")->size(), 100'000u);
  EXPECT_EQ(*(*file)->Text("layers/dense/vars", "name"), "dénse");
  EXPECT_EQ(*(*file)->Texts("names", "list"), (std::vector<std::string>{"a", "b/c"}));
  EXPECT_TRUE((*file)->Texts("names", "none")->empty());
  EXPECT_TRUE(absl::IsNotFound((*file)->Text("names", "list").status()));
  EXPECT_TRUE(absl::IsNotFound((*file)->Texts("names", "other").status()));
}

TEST(Hdf5, OtherFilesAreRefused) {
  for (const std::string& bytes : {std::string(), std::string("no HDF5"), Made().substr(0, 900)}) {
    const Status status = OpenBytes(bytes).status();
    EXPECT_TRUE(absl::IsDataLoss(status)) << status;
    EXPECT_NE(Message(status).find("some.h5"), std::string_view::npos) << status;
  }
  EXPECT_TRUE(absl::IsNotFound(Hdf5File::Open(Path("none.h5")).status()));
}

// A damaged file may crash or subvert the library, but this process keeps running and gets a
// result.
TEST(Hdf5, DamagedFilesHarmNobody) {
  const std::string bytes = Made();
  for (size_t at = 8; at < bytes.size() && at < 4000; at += 397) {
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 0xFF);
    const auto file = OpenBytes(damaged);
    EXPECT_TRUE(file.ok() || absl::IsDataLoss(file.status())) << at << ": " << file.status();
  }
}

// Opens a file with a shell script in place of the program, and returns the error.
Status ErrorWith(const std::string& script) {
  const std::string program = std::getenv("TFJOB_HDF5"), replacement = Path("program.sh");
  EXPECT_TRUE(WriteFileAtomically(replacement, StrCat("#!/bin/sh\n", script, "\n")).ok());
  EXPECT_EQ(chmod(replacement.c_str(), 0700), 0);
  setenv("TFJOB_HDF5", replacement.c_str(), 1);
  const Status status = OpenBytes("x").status();
  setenv("TFJOB_HDF5", program.c_str(), 1);
  return status;
}

TEST(Hdf5, IfTheProgramDiesTheFileIsNamed) {
  const Status status = ErrorWith("kill -SEGV $$");
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_NE(Message(status).find("some.h5: the HDF5 library ended by signal 11"),
            std::string_view::npos)
      << status;
}

TEST(Hdf5, AProgramThatClosesItsErrorsAndStaysIsKilled) {
  const Status status = ErrorWith("exec 2>&-; exec sleep 1000");
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  EXPECT_NE(Message(status).find("some.h5: the HDF5 library ended by signal 9"),
            std::string_view::npos)
      << status;
}

// The output is a file in memory. The process's memory limit does not apply to such a file, so the
// output has a separate limit.
TEST(Hdf5, TheOutputHasALargestSize) {
  const NamedTensors large = {{"zeros", Tensor(DType::kFloat32, Shape({1 << 20}))}};
  StatusOr<MemoryFile> file = MakeHdf5("large.h5", large, Json::object());
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_TRUE(WriteFileAtomically(Path("large.h5"), *file->Map()).ok());
  const auto convert = [&](int megabytes) {
    const std::string output = Path(StrCat("large", megabytes));
    const int status = std::system(StrCat(std::getenv("TFJOB_HDF5"), " read 1024 60 ", megabytes,
                                          " < ", Path("large.h5"), " > ", output)
                                       .c_str());
    struct stat info{};
    EXPECT_EQ(stat(output.c_str(), &info), 0);
    return std::pair(status, info.st_size);
  };
  EXPECT_EQ(convert(5).first, 0);
  EXPECT_GT(convert(5).second, 4 << 20);
  EXPECT_NE(convert(1).first, 0);
  EXPECT_LE(convert(1).second, 1 << 20);
}

TEST(Hdf5, AMissingProgramIsNamed) {
  const std::string program = std::getenv("TFJOB_HDF5");
  setenv("TFJOB_HDF5", "/nowhere/tfjob-hdf5", 1);
  const Status status = OpenBytes("x").status();
  setenv("TFJOB_HDF5", program.c_str(), 1);
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_NE(Message(status).find("/nowhere/tfjob-hdf5"), std::string_view::npos) << status;
}

// If SIGCHLD is ignored, the kernel does not keep exit statuses.
TEST(Hdf5, AResultWhoseExitStatusIsUnknownIsNotUsed) {
  struct sigaction ignore{}, before{};
  ignore.sa_handler = SIG_IGN;
  ASSERT_EQ(sigaction(SIGCHLD, &ignore, &before), 0);
  const Status status = MakeHdf5("some.h5", Some(), Json::object()).status();
  sigaction(SIGCHLD, &before, nullptr);
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_NE(Message(status).find("SIGCHLD"), std::string_view::npos) << status;
}

}  // namespace
}  // namespace tfjob::io
