#include "operator/kube/doubles/test_certificates.h"

#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <memory>

#include "runtime/base/status.h"

namespace tfjob::kube {
namespace {

constexpr long kDay = 24 * 60 * 60;

std::string ToPem(X509* certificate) {
  BIO* bio = BIO_new(BIO_s_mem());
  PEM_write_bio_X509(bio, certificate);
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  std::string pem(data, static_cast<size_t>(size));
  BIO_free(bio);
  return pem;
}

std::string ToPem(EVP_PKEY* key) {
  BIO* bio = BIO_new(BIO_s_mem());
  PEM_write_bio_PrivateKey(bio, key, nullptr, nullptr, 0, nullptr, nullptr);
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  std::string pem(data, static_cast<size_t>(size));
  BIO_free(bio);
  return pem;
}

void AddExtension(X509* certificate, X509* issuer, int id, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, id, value.c_str());
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

X509* NewCertificate(const std::string& name, EVP_PKEY* key, X509* issuer, long serial) {
  X509* certificate = X509_new();
  X509_set_version(certificate, 2);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), serial);
  X509_gmtime_adj(X509_getm_notBefore(certificate), -kDay);
  X509_gmtime_adj(X509_getm_notAfter(certificate), kDay);
  X509_set_pubkey(certificate, key);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  X509_set_issuer_name(certificate,
                       X509_get_subject_name(issuer == nullptr ? certificate : issuer));
  return certificate;
}

}  // namespace

struct TestAuthority::Impl {
  EVP_PKEY* key = nullptr;
  X509* certificate = nullptr;
  long serial = 1;

  CertificatePair Issue(const std::string& name, const std::string& usage,
                        const std::string& alternatives) {
    EVP_PKEY* leaf_key = EVP_EC_gen("P-256");
    X509* leaf = NewCertificate(name, leaf_key, certificate, ++serial);
    AddExtension(leaf, certificate, NID_ext_key_usage, usage);
    if (!alternatives.empty()) {
      AddExtension(leaf, certificate, NID_subject_alt_name, alternatives);
    }
    X509_sign(leaf, key, EVP_sha256());
    CertificatePair pair{ToPem(leaf), ToPem(leaf_key)};
    X509_free(leaf);
    EVP_PKEY_free(leaf_key);
    return pair;
  }
};

TestAuthority::TestAuthority() : impl_(new Impl) {
  impl_->key = EVP_EC_gen("P-256");
  impl_->certificate = NewCertificate("test authority", impl_->key, nullptr, 1);
  AddExtension(impl_->certificate, impl_->certificate, NID_basic_constraints, "critical,CA:TRUE");
  X509_sign(impl_->certificate, impl_->key, EVP_sha256());
  certificate_ = ToPem(impl_->certificate);
}

TestAuthority::~TestAuthority() {
  X509_free(impl_->certificate);
  EVP_PKEY_free(impl_->key);
  delete impl_;
}

CertificatePair TestAuthority::IssueServer(const std::vector<std::string>& names) {
  std::string alternatives;
  for (const std::string& name : names) {
    const bool address = name.find_first_not_of("0123456789.:") == std::string::npos;
    alternatives += StrCat(alternatives.empty() ? "" : ",", address ? "IP:" : "DNS:", name);
  }
  return impl_->Issue(names[0], "serverAuth", alternatives);
}

CertificatePair TestAuthority::IssueClient(const std::string& name) {
  return impl_->Issue(name, "clientAuth", "");
}

}  // namespace tfjob::kube
