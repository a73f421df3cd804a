#include "operator/kube/rest/tls.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

#include <cstdlib>
#include <utility>

#include "operator/kube/config/parse_pem.h"
#include "runtime/base/env.h"

namespace tfjob::kube {
namespace {

using Store = std::unique_ptr<X509_STORE, OpenSslDeleter<X509_STORE_free>>;

StatusOr<Store> MakeStore(const std::string& pem) {
  StatusOr<std::vector<X509Certificate>> certificates = ParseCertificates(pem);
  if (!certificates.ok()) return Annotate(certificates.status(), "certificate authority");
  Store store(X509_STORE_new());
  for (const X509Certificate& certificate : *certificates) {
    X509_STORE_add_cert(store.get(), certificate.get());
  }
  ERR_clear_error();  // duplicate certificates are harmless
  return store;
}

// Returns the file with the system's certificates. The first call hides the file from OpenSSL: it
// sets OpenSSL's environment variable to /dev/null. Otherwise, cpprestsdk would read the file for
// every connection, which takes 20 ms of CPU time, although Apply then replaces the result. Exec
// plugins are not affected, because they get the environment that was copied when the kubeconfig
// was resolved (ExecOptions). Setting a single variable once does not disturb other threads that
// read the environment.
const std::string& HiddenSystemFile() {
  static const std::string file = [] {
    const char* name = X509_get_default_cert_file_env();
    std::string found = GetEnv(name).value_or(X509_get_default_cert_file());
    setenv(name, "/dev/null", 1);
    return found;
  }();
  return file;
}

Store MakeSystemStore() {
  Store store(X509_STORE_new());
  X509_STORE_load_file(store.get(), HiddenSystemFile().c_str());
  const std::string folder =
      GetEnv(X509_get_default_cert_dir_env()).value_or(X509_get_default_cert_dir());
  X509_STORE_load_path(store.get(), folder.c_str());
  ERR_clear_error();  // without certificates no server is trusted, and the handshake reports that
  return store;
}

}  // namespace

struct TlsSettings::Impl {
  PemSource authority;
  ParsedPair client;  // if its chain is empty, there is no client certificate

  Mutex mutex;
  std::string authority_pem ABSL_GUARDED_BY(mutex);
  Store store ABSL_GUARDED_BY(mutex);  // null: not loaded yet
  std::string verify_error ABSL_GUARDED_BY(mutex);
};

TlsSettings::TlsSettings(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
TlsSettings::~TlsSettings() = default;

StatusOr<std::shared_ptr<TlsSettings>> TlsSettings::Create(
    PemSource authority, std::shared_ptr<const CertificatePair> certificate) {
  auto impl = std::make_unique<Impl>();
  impl->authority = std::move(authority);
  HiddenSystemFile();
  if (certificate != nullptr) {
    StatusOr<ParsedPair> client = ParseCertificatePair(*certificate);
    if (!client.ok()) return Annotate(client.status(), "client certificate");
    impl->client = *std::move(client);
  }
  std::shared_ptr<TlsSettings> settings(new TlsSettings(std::move(impl)));
  RETURN_IF_ERROR(settings->LoadAuthority());
  return settings;
}

Status TlsSettings::LoadAuthority() {
  if (impl_->authority.empty()) {
    MutexLock lock(impl_->mutex);
    if (impl_->store == nullptr) impl_->store = MakeSystemStore();
    return OkStatus();
  }
  ASSIGN_OR_RETURN(std::string pem, impl_->authority.Read());
  MutexLock lock(impl_->mutex);
  if (pem == impl_->authority_pem) return OkStatus();
  ASSIGN_OR_RETURN(impl_->store, MakeStore(pem));
  impl_->authority_pem = std::move(pem);
  return OkStatus();
}

Status TlsSettings::Apply(ssl_ctx_st* context) {
  // Ignore errors: while a file is being replaced, it may be missing for a moment.
  if (impl_->authority.data.empty()) LoadAuthority().IgnoreError();
  SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
  SSL_CTX_set_cert_verify_callback(context, &TlsSettings::Verify, this);
  {
    MutexLock lock(impl_->mutex);
    if (impl_->store != nullptr) SSL_CTX_set1_cert_store(context, impl_->store.get());
  }
  const auto& [chain, key] = impl_->client;
  if (chain.empty()) return OkStatus();
  bool used = SSL_CTX_use_certificate(context, chain[0].get()) == 1 &&
              SSL_CTX_use_PrivateKey(context, key.get()) == 1;
  for (size_t i = 1; i < chain.size(); ++i) {
    used = used && SSL_CTX_add1_chain_cert(context, chain[i].get()) == 1;
  }
  if (!used) return InvalidArgument("client certificate: ", TakeOpenSslError());
  return OkStatus();
}

int TlsSettings::Verify(x509_store_ctx_st* context, void* settings) {
  const int trusted = X509_verify_cert(context);
  if (trusted == 1) return trusted;
  const int error = X509_STORE_CTX_get_error(context);
  Impl& impl = *static_cast<TlsSettings*>(settings)->impl_;
  MutexLock lock(impl.mutex);
  // If OpenSSL reports no specific error, the check of the server's name has failed.
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
