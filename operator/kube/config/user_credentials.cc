#include "operator/kube/config/user_credentials.h"

#include <optional>

#include "absl/strings/escaping.h"
#include "operator/kube/config/token_file.h"

namespace tfjob::kube {
namespace {

class WrittenDown : public Credentials {
 public:
  explicit WrittenDown(UserCredentialsOptions options) {
    if (!options.token_file.empty()) {
      token_.emplace(std::move(options.token_file), std::move(options.token), *options.clock);
    } else if (!options.token.empty()) {
      header_ = StrCat("Bearer ", options.token);
    } else if (!options.username.empty()) {
      header_ =
          StrCat("Basic ", absl::Base64Escape(StrCat(options.username, ":", options.password)));
    }
    if (!options.client_certificate.empty()) {
      certificate_.emplace(std::move(options.client_certificate), std::move(options.client_key),
                           *options.clock);
    }
  }

  StatusOr<RequestCredentials> Get() override {
    RequestCredentials credentials;
    credentials.authorization = header_;
    if (token_) {
      ASSIGN_OR_RETURN(const TokenFile::Token token, token_->Get());
      credentials.authorization = StrCat("Bearer ", token.text);
      credentials.version = token.version;
    }
    if (certificate_) {
      ASSIGN_OR_RETURN(credentials.certificate, certificate_->Get());
    }
    return credentials;
  }

  void Unauthorized(const RequestCredentials& used) override {
    if (token_) token_->Refuse(used.version);
  }

 private:
  std::string header_;
  std::optional<TokenFile> token_;
  std::optional<CertificateFiles> certificate_;
};

}  // namespace

std::shared_ptr<Credentials> UserCredentials(UserCredentialsOptions options) {
  return std::make_shared<WrittenDown>(std::move(options));
}

}  // namespace tfjob::kube
