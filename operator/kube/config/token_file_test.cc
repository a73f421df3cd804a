#include "operator/kube/config/token_file.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "operator/kube/config/pem.h"
#include "operator/kube/config/user_credentials.h"
#include "operator/kube/doubles/test_certificates.h"
#include "runtime/base/fake_clock.h"
#include "runtime/base/file.h"

namespace tfjob::kube {
namespace {

// Simulates a folder as the kubelet writes it: the files are links through ..data, which is
// replaced atomically.
class ProjectedFolder {
 public:
  ProjectedFolder() {
    std::string pattern = std::filesystem::temp_directory_path() / "token_file_test.XXXXXX";
    path_ = mkdtemp(pattern.data());
  }
  ~ProjectedFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }

  std::string Path(const std::string& name) const { return path_ / name; }

  void Publish(const std::vector<std::pair<std::string, std::string>>& files) {
    const std::string version = StrCat("..v", ++version_);
    std::filesystem::create_directory(path_ / version);
    for (const auto& [name, content] : files) {
      ASSERT_TRUE(WriteFileAtomically(path_ / version / name, content).ok());
      std::error_code there;
      std::filesystem::create_symlink(std::filesystem::path("..data") / name, path_ / name, there);
    }
    std::filesystem::create_symlink(version, path_ / "..data_tmp");
    std::filesystem::rename(path_ / "..data_tmp", path_ / "..data");
    if (version_ > 1) std::filesystem::remove_all(path_ / StrCat("..v", version_ - 1));
  }
  void Vanish() { std::filesystem::remove(path_ / "..data"); }

 private:
  std::filesystem::path path_;
  int version_ = 0;
};

class TokenFileTest : public ::testing::Test {
 protected:
  TokenFileTest() { folder_.Publish({{"token", "one\n"}}); }

  std::string Get() {
    const StatusOr<TokenFile::Token> token = file_.Get();
    return token.ok() ? token->text : std::string(Message(token.status()));
  }

  ProjectedFolder folder_;
  FakeClock clock_{*ParseTime("2026-11-21T09:30:00Z")};
  TokenFile file_{folder_.Path("token"), "", clock_};
};

TEST_F(TokenFileTest, IsReadAgainAfterAMinuteLessTenSeconds) {
  EXPECT_EQ(Get(), "one");
  folder_.Publish({{"token", "  two\n"}});
  clock_.Advance(49999ms);
  EXPECT_EQ(Get(), "one");
  clock_.Advance(1ms);
  EXPECT_EQ(Get(), "two");
}

TEST_F(TokenFileTest, IsReadAtMostOnceAMinute) {
  const uint64_t version = file_.Get()->version;
  for (int i = 0; i < 100; ++i) EXPECT_EQ(file_.Get()->version, version);
}

TEST_F(TokenFileTest, ARefusalReadsAgainOnceForEachToken) {
  const TokenFile::Token first = *file_.Get();
  folder_.Publish({{"token", "two"}});
  for (int i = 0; i < 3; ++i) file_.Refuse(first.version);
  const TokenFile::Token second = *file_.Get();
  EXPECT_EQ(second.text, "two");
  folder_.Publish({{"token", "three"}});
  file_.Refuse(first.version);  // a late response to an old request
  EXPECT_EQ(Get(), "two");
  file_.Refuse(second.version);
  EXPECT_EQ(Get(), "three");
}

TEST_F(TokenFileTest, KeepsTheOldTokenWhenTheFileIsOfNoUse) {
  EXPECT_EQ(Get(), "one");
  for (const char* content : {"", " \n", "two words", "line\nline", "n\xc3\xa9"}) {
    folder_.Publish({{"token", content}});
    clock_.Advance(60s);
    EXPECT_EQ(Get(), "one") << content;
  }
  folder_.Vanish();
  clock_.Advance(60s);
  EXPECT_EQ(Get(), "one");
  file_.Refuse(file_.Get()->version);
  EXPECT_EQ(Get(), "one");
  folder_.Publish({{"token", "two"}});  // the file is read again without waiting for a minute
  EXPECT_EQ(Get(), "two");
}

TEST_F(TokenFileTest, WithoutAnyTokenErrorsNameThePath) {
  folder_.Publish({{"token", "\n"}});
  EXPECT_NE(Get().find(StrCat(folder_.Path("token"), ": expected a token, got an empty file")),
            std::string::npos)
      << Get();
  folder_.Vanish();
  EXPECT_EQ(file_.Get().status().code(), StatusCode::kUnauthenticated);
  EXPECT_NE(Get().find(folder_.Path("token")), std::string::npos) << Get();
}

TEST_F(TokenFileTest, AnInitialTokenIsUsedUntilTheFileCanBeRead) {
  TokenFile file(folder_.Path("later"), "initial", clock_);
  EXPECT_EQ(file.Get()->text, "initial");
  folder_.Publish({{"later", "read"}});
  EXPECT_EQ(file.Get()->text, "read");
}

TEST_F(TokenFileTest, CredentialsFollowTheFile) {
  UserCredentialsOptions options;
  options.token = "initial";
  options.token_file = folder_.Path("token");
  options.clock = &clock_;
  const auto credentials = UserCredentials(options);
  const RequestCredentials first = *credentials->Get();
  EXPECT_EQ(first.authorization, "Bearer one");
  folder_.Publish({{"token", "two"}});
  credentials->Unauthorized(first);
  EXPECT_EQ(credentials->Get()->authorization, "Bearer two");
}

class CertificateFilesTest : public ::testing::Test {
 protected:
  CertificateFilesTest() { Publish(first_); }

  void Publish(const CertificatePair& pair) {
    folder_.Publish({{"tls.crt", pair.certificate}, {"tls.key", pair.key}});
  }

  TestAuthority authority_;
  const CertificatePair first_ = authority_.IssueClient("first");
  const CertificatePair second_ = authority_.IssueClient("second");
  ProjectedFolder folder_;
  FakeClock clock_{*ParseTime("2026-11-21T09:30:00Z")};
  CertificateFiles files_{{"", folder_.Path("tls.crt")}, {"", folder_.Path("tls.key")}, clock_};
};

TEST_F(CertificateFilesTest, AreLookedAtEveryFiveMinutes) {
  const auto first = *files_.Get();
  EXPECT_EQ(*first, first_);
  Publish(second_);
  clock_.Advance(299s);
  EXPECT_EQ(*files_.Get(), first);
  clock_.Advance(1s);
  EXPECT_EQ(**files_.Get(), second_);
}

TEST_F(CertificateFilesTest, TheSamePairIsTheSamePointer) {
  const auto first = *files_.Get();
  Publish(first_);
  clock_.Advance(300s);
  EXPECT_EQ(*files_.Get(), first);
}

TEST_F(CertificateFilesTest, APairThatDoesNotFitTogetherLeavesTheOldOne) {
  const auto first = *files_.Get();
  Publish({second_.certificate, first_.key});
  clock_.Advance(300s);
  EXPECT_EQ(*files_.Get(), first);
  folder_.Vanish();
  clock_.Advance(300s);
  EXPECT_EQ(*files_.Get(), first);
  Publish(second_);
  clock_.Advance(300s);
  EXPECT_EQ(**files_.Get(), second_);
}

TEST_F(CertificateFilesTest, WithoutAnyPairErrorsNameThePath) {
  CertificateFiles missing({"", "/no/such.crt"}, {"", "/no/such.key"}, clock_);
  EXPECT_NE(Message(missing.Get().status()).find("/no/such.crt"), std::string_view::npos);
  CertificateFiles odd({first_.certificate, ""}, {second_.key, ""}, clock_);
  const Status status = odd.Get().status();
  EXPECT_EQ(status.code(), StatusCode::kUnauthenticated);
  EXPECT_NE(Message(status).find("does not belong"), std::string_view::npos) << status;
}

TEST(Pem, ChainsAndRootsAreRead) {
  TestAuthority authority;
  const CertificatePair pair = authority.IssueClient("me");
  EXPECT_TRUE(CheckCertificates(authority.certificate()).ok());
  EXPECT_TRUE(
      CheckCertificates(StrCat("# a comment\n", pair.certificate, authority.certificate())).ok());
  EXPECT_TRUE(CheckCertificatePair(pair).ok());
  EXPECT_TRUE(
      CheckCertificatePair({StrCat(pair.certificate, authority.certificate()), pair.key}).ok());
}

TEST(Pem, WhatIsBrokenIsRefused) {
  TestAuthority authority;
  const CertificatePair pair = authority.IssueClient("me");
  std::string broken = pair.certificate;
  broken[broken.size() / 2] = '!';
  EXPECT_FALSE(CheckCertificates(broken).ok());
  EXPECT_FALSE(CheckCertificates(StrCat(authority.certificate(), broken)).ok());
  EXPECT_FALSE(CheckCertificates("").ok());
  EXPECT_FALSE(CheckCertificates("hello").ok());
  EXPECT_FALSE(CheckCertificates(pair.key).ok());
  EXPECT_FALSE(CheckCertificatePair({pair.certificate, ""}).ok());
  EXPECT_FALSE(CheckCertificatePair({pair.certificate, pair.certificate}).ok());
}

}  // namespace
}  // namespace tfjob::kube
