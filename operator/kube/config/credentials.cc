#include "operator/kube/config/credentials.h"

#include <algorithm>

namespace tfjob::kube {
namespace {

class Anonymous : public Credentials {
 public:
  StatusOr<RequestCredentials> Get() override { return RequestCredentials(); }
  void Unauthorized(const RequestCredentials&) override {}
};

}  // namespace

std::shared_ptr<Credentials> NoCredentials() {
  return std::make_shared<Anonymous>();
}

bool IsToken(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < '\x7f'; });
}

}  // namespace tfjob::kube
