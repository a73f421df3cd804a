#include "operator/kube/tls.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <utility>
#include <vector>

namespace tfjob::kube {
namespace {

template <auto Free>
struct Freer {
  template <typename T>
  void operator()(T* pointer) const {
    Free(pointer);
  }
};
using Bio = std::unique_ptr<BIO, Freer<BIO_free_all>>;
using Certificate = std::unique_ptr<X509, Freer<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Freer<EVP_PKEY_free>>;
using Store = std::unique_ptr<X509_STORE, Freer<X509_STORE_free>>;

std::string OpenSslError() {
  const unsigned long code = ERR_peek_last_error();
  const char* reason = ERR_reason_error_string(code);
  ERR_clear_error();
  return reason == nullptr ? "no PEM block" : reason;
}

Bio Memory(const std::string& text) {
  return Bio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

StatusOr<std::vector<Certificate>> ParseCertificates(const std::string& pem,
                                                     std::string_view what) {
  std::vector<Certificate> certificates;
  const Bio bio = Memory(pem);
  while (X509* next = PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)) {
    certificates.emplace_back(next);
  }
  const unsigned long code = ERR_peek_last_error();
  const bool at_end =
      ERR_GET_LIB(code) == ERR_LIB_PEM && ERR_GET_REASON(code) == PEM_R_NO_START_LINE;
  if (certificates.empty() || (code != 0 && !at_end)) {
    return InvalidArgument(what, ": expected certificates in PEM: ", OpenSslError());
  }
  ERR_clear_error();
  return certificates;
}

StatusOr<Store> MakeStore(const std::string& pem) {
  ASSIGN_OR_RETURN(const auto certificates, ParseCertificates(pem, "certificate authority"));
  Store store(X509_STORE_new());
  for (const Certificate& certificate : certificates) {
    X509_STORE_add_cert(store.get(), certificate.get());
  }
  ERR_clear_error();  // a certificate that is there twice is no harm
  return store;
}

}  // namespace

struct TlsSettings::Impl {
  PemSource authority;
  std::vector<Certificate> chain;  // leaf first; empty: no client certificate
  Key key;

  Mutex mutex;
  std::string authority_pem ABSL_GUARDED_BY(mutex);
  Store store ABSL_GUARDED_BY(mutex);  // null: the system's
  std::string verify_error ABSL_GUARDED_BY(mutex);
};

TlsSettings::TlsSettings(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TlsSettings::~TlsSettings() = default;

StatusOr<std::shared_ptr<TlsSettings>> TlsSettings::Create(
    PemSource authority, std::shared_ptr<const CertificatePair> certificate) {
  auto impl = std::make_unique<Impl>();
  impl->authority = std::move(authority);
  if (certificate != nullptr) {
    ASSIGN_OR_RETURN(impl->chain,
                     ParseCertificates(certificate->certificate, "client certificate"));
    const Bio bio = Memory(certificate->key);
    impl->key.reset(PEM_read_bio_PrivateKey(bio.get(), nullptr, nullptr, nullptr));
    if (impl->key == nullptr) {
      return InvalidArgument("client key: expected a private key in PEM: ", OpenSslError());
    }
    if (X509_check_private_key(impl->chain[0].get(), impl->key.get()) != 1) {
      return InvalidArgument("client certificate and client key do not belong together: ",
                             OpenSslError());
    }
  }
  std::shared_ptr<TlsSettings> settings(new TlsSettings(std::move(impl)));
  RETURN_IF_ERROR(settings->LoadAuthority());
  return settings;
}

Status TlsSettings::LoadAuthority() {
  if (impl_->authority.empty()) return OkStatus();
  ASSIGN_OR_RETURN(std::string pem, impl_->authority.Read());
  MutexLock lock(impl_->mutex);
  if (pem == impl_->authority_pem) return OkStatus();
  ASSIGN_OR_RETURN(impl_->store, MakeStore(pem));
  impl_->authority_pem = std::move(pem);
  return OkStatus();
}

Status TlsSettings::Apply(ssl_ctx_st* context) {
  // A file is replaced in place, and may be missing for a moment.
  if (impl_->authority.data.empty()) LoadAuthority().IgnoreError();
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_cert_verify_callback(context, &TlsSettings::Verify, this);
  {
    MutexLock lock(impl_->mutex);
    if (impl_->store != nullptr) SSL_CTX_set1_cert_store(context, impl_->store.get());
  }
  if (impl_->chain.empty()) return OkStatus();
  bool used = SSL_CTX_use_certificate(context, impl_->chain[0].get()) == 1 &&
              SSL_CTX_use_PrivateKey(context, impl_->key.get()) == 1;
  for (size_t i = 1; i < impl_->chain.size(); ++i) {
    used = used && SSL_CTX_add1_chain_cert(context, impl_->chain[i].get()) == 1;
  }
  if (!used) return InvalidArgument("client certificate: ", OpenSslError());
  return OkStatus();
}

int TlsSettings::Verify(x509_store_ctx_st* context, void* settings) {
  const int trusted = X509_verify_cert(context);
  if (trusted == 1) return trusted;
  const int error = X509_STORE_CTX_get_error(context);
  Impl& impl = *static_cast<TlsSettings*>(settings)->impl_;
  MutexLock lock(impl.mutex);
  // Without an error of OpenSSL's own it was the check of the name behind it that failed.
  const bool named = error != X509_V_OK && error != X509_V_ERR_UNSPECIFIED;
  impl.verify_error =
      !named ? "its certificate is for another name" : X509_verify_cert_error_string(error);
  return trusted;
}

std::string TlsSettings::TakeVerifyError() {
  MutexLock lock(impl_->mutex);
  return std::exchange(impl_->verify_error, {});
}

}  // namespace tfjob::kube
