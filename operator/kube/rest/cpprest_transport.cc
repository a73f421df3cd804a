#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <map>
#include <utility>

#include "operator/kube/rest/address_family.h"
#include "operator/kube/rest/cpprest_exchange.h"
#include "operator/kube/rest/tls.h"
#include "operator/kube/rest/transport.h"

namespace tfjob::kube {
namespace {

using boost::asio::ip::tcp;
using web::http::client::http_client;
using web::http::client::http_client_config;
using SteadyClock = std::chrono::steady_clock;

// kStreamInactivity is long, because a stream may be silent until the server ends it, which happens
// within an hour.
constexpr auto kStreamInactivity = std::chrono::minutes(65);
constexpr auto kUnaryInactivity = std::chrono::minutes(5);  // the deadlines of calls are shorter
constexpr size_t kStreamBytes = size_t{4} << 20;
constexpr auto kLinger = std::chrono::seconds(5);

Status StartPool() {
  static const Status started = [] {
    try {
      crossplat::threadpool::initialize_with_threads(1);
      return OkStatus();
    } catch (const std::exception& error) {
      return FailedPrecondition(
          "cpprestsdk's thread pool was started before the first transport, with more threads than "
          "are safe: ",
          error.what());
    }
  }();
  return started;
}

std::string HostOf(const std::string& server) {
  try {
    std::string host = web::uri(server).host();
    if (host.size() > 2 && host.front() == '[') host = host.substr(1, host.size() - 2);
    return host;
  } catch (const std::exception&) {
    return "";  // Check() reports the error
  }
}

// Opens the socket before cpprestsdk would, and sets its options. cpprestsdk has no interface for
// these options, but if a socket is already open, cpprestsdk uses it unchanged.
void OpenWithKeepalive(tcp::socket& socket, int family, Duration idle) {
  if (socket.is_open()) return;
  boost::system::error_code error;
  socket.open(family == AF_INET6 ? tcp::v6() : tcp::v4(), error);
  if (error) return;
  const auto set = [&socket](int level, int option, int value) {
    setsockopt(socket.native_handle(), level, option, &value, sizeof(value));
  };
  const int seconds =
      static_cast<int>(std::chrono::duration_cast<std::chrono::seconds>(idle).count());
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, std::max(1, seconds));
  set(IPPROTO_TCP, TCP_KEEPINTVL, std::max(1, seconds / 3));
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, std::max(1, 2 * seconds) * 1000);
}

std::string OpenSslReason(int code) {
  const char* reason = ERR_reason_error_string(static_cast<unsigned long>(code));
  return reason == nullptr ? "" : StrCat(" (", reason, ")");
}

// Converts an exception from cpprestsdk to a status. cpprestsdk loses the category of the error, so
// only the two codes in this function are reliable.
Status Translate(std::exception_ptr exception, const std::string& server, TlsSettings* tls) {
  try {
    std::rethrow_exception(exception);
  } catch (const web::http::http_exception& error) {
    const int code = error.error_code().value();
    if (code == static_cast<int>(std::errc::operation_canceled)) {
      return Cancelled(server, ": the request was cancelled");
    }
    if (code == static_cast<int>(std::errc::timed_out)) {
      return DeadlineExceeded(server, ": no data for too long");
    }
    const std::string_view what = error.what();
    if (what.find("SSL handshake") == std::string_view::npos)
      return Unavailable(server, ": ", what);
    const std::string distrust = tls == nullptr ? "" : tls->TakeVerifyError();
    if (distrust.empty()) return Unavailable(server, ": TLS handshake failed", OpenSslReason(code));
    return Unavailable(
        server, ": its certificate is not trusted: ", distrust,
        "; check the certificate authority and the server name of the configuration");
  } catch (const std::exception& error) {
    return Unavailable(server, ": ", error.what());
  } catch (...) {
    return Unavailable(server, ": unknown error");
  }
}

// Tracks the exchanges in progress, which may briefly outlive the transport.
struct Register {
  Mutex mutex;
  CondVar ended;
  bool stopped ABSL_GUARDED_BY(mutex) = false;
  int64_t last ABSL_GUARDED_BY(mutex) = 0;
  std::map<int64_t, std::weak_ptr<Exchange>> exchanges ABSL_GUARDED_BY(mutex);
};

// Contains the HTTP clients, with their connections, for one client certificate.
struct Clients {
  std::shared_ptr<const CertificatePair> certificate;
  std::shared_ptr<TlsSettings> tls;  // null: plain HTTP
  std::unique_ptr<http_client> unary;
  std::unique_ptr<http_client> streams;
};

bool IsControl(unsigned char c) {
  return c < ' ' || c == 0x7f;
}

class Stream : public HttpStream {
 public:
  Stream(std::shared_ptr<Exchange> exchange, std::string server,
         std::shared_ptr<AddressFamily> family)
      : exchange_(std::move(exchange)), server_(std::move(server)), family_(std::move(family)) {}
  ~Stream() override { Cancel(); }

  StatusOr<HttpResponse> Head(Duration timeout) override {
    auto head = exchange_->AwaitHead(SteadyClock::now() + timeout);
    if (!head) return Late(timeout);
    if (head->ok()) family_->Learn();
    return *std::move(head);
  }
  StatusOr<std::string> Read(Duration timeout) override {
    auto bytes = exchange_->AwaitBytes(SteadyClock::now() + timeout);
    return bytes ? *std::move(bytes) : Late(timeout);
  }
  void Cancel() override { exchange_->Cancel(Cancelled(server_, ": the stream was cancelled")); }

 private:
  Status Late(Duration timeout) const {
    return DeadlineExceeded(server_, ": no data for ", FormatDuration(timeout));
  }

  const std::shared_ptr<Exchange> exchange_;
  const std::string server_;
  const std::shared_ptr<AddressFamily> family_;
};

// Adds the headers, even if several have the same name. cpprestsdk would join the values of such
// headers, which would change their meaning: an API server would read two groups as one group "a,
// b". Because cpprestsdk writes a value unchanged, the first header's value can contain the other
// headers of that name, each after a line break.
void AddHeaders(const std::vector<std::pair<std::string, std::string>>& headers,
                web::http::http_headers& message) {
  std::map<std::string, std::string> lines;
  for (const auto& [name, value] : headers) {
    std::string& line = lines[name];
    line += line.empty() ? value : StrCat("\r\n", name, ": ", value);
  }
  for (const auto& [name, line] : lines) message.add(name, line);
}

class CpprestTransport : public Transport {
 public:
  CpprestTransport(ClusterConfig config, TransportOptions options, std::optional<int> family)
      : config_(std::move(config)),
        options_(std::move(options)),
        family_(std::make_shared<AddressFamily>(HostOf(config_.server), family)),
        register_(std::make_shared<Register>()) {}

  ~CpprestTransport() override {
    Stop();
    MutexLock lock(register_->mutex);
    const auto deadline = SteadyClock::now() + kLinger;
    while (!register_->exchanges.empty() &&
           register_->ended.WaitUntil(register_->mutex, deadline)) {
    }
  }

  StatusOr<HttpResponse> Send(HttpRequest request, const RequestCredentials& credentials,
                              Duration timeout) override {
    const auto deadline = SteadyClock::now() + timeout;
    ASSIGN_OR_RETURN(const auto clients, ClientsFor(credentials.certificate));
    ASSIGN_OR_RETURN(const auto exchange, Start(std::move(request), credentials, *clients, false));
    auto response = exchange->AwaitEnd(deadline);
    if (response) {
      if (response->ok()) family_->Learn();
      return *std::move(response);
    }
    const Status late =
        DeadlineExceeded(config_.server, ": no complete answer within ", FormatDuration(timeout));
    exchange->Cancel(late);
    return late;
  }

  StatusOr<std::unique_ptr<HttpStream>> Open(HttpRequest request,
                                             const RequestCredentials& credentials) override {
    ASSIGN_OR_RETURN(const auto clients, ClientsFor(credentials.certificate));
    ASSIGN_OR_RETURN(auto exchange, Start(std::move(request), credentials, *clients, true));
    return std::unique_ptr<HttpStream>(new Stream(std::move(exchange), config_.server, family_));
  }

  void Stop() override {
    std::vector<std::shared_ptr<Exchange>> running;
    {
      MutexLock lock(register_->mutex);
      register_->stopped = true;
      for (const auto& [id, weak] : register_->exchanges) {
        if (auto exchange = weak.lock()) running.push_back(std::move(exchange));
      }
    }
    for (const auto& exchange : running) exchange->Cancel(Stopped());
  }

  // Returns an error if every request would fail, for example because a certificate is malformed.
  Status Check() { return ClientsFor(nullptr).status(); }

 private:
  Status Stopped() const { return Cancelled(config_.server, ": the client was stopped"); }

  StatusOr<std::shared_ptr<Exchange>> Start(HttpRequest request,
                                            const RequestCredentials& credentials,
                                            const Clients& clients, bool stream) {
    const size_t limit = request.max_response_bytes;
    ASSIGN_OR_RETURN(auto message, ToCpprest(std::move(request), credentials));
    Exchange::Options options;
    options.stream = stream;
    options.max_bytes = stream ? kStreamBytes : limit > 0 ? limit : options_.max_response_bytes;
    options.translate = [server = config_.server, tls = clients.tls](std::exception_ptr exception) {
      return Translate(std::move(exception), server, tls.get());
    };
    std::shared_ptr<Exchange> exchange;
    {
      MutexLock lock(register_->mutex);
      if (register_->stopped) return Stopped();
      const int64_t id = ++register_->last;
      options.on_end = [held = register_, id] {
        MutexLock lock(held->mutex);
        held->exchanges.erase(id);
        if (held->stopped) held->ended.NotifyAll();
      };
      exchange = std::make_shared<Exchange>(std::move(options));
      register_->exchanges.emplace(id, exchange);
    }
    exchange->Start(stream ? *clients.streams : *clients.unary, std::move(message));
    return exchange;
  }

  // Creates cpprestsdk's form of the request. Values cannot inject headers: control characters are
  // rejected when the configuration and the credentials are read, and targets are escaped.
  StatusOr<web::http::http_request> ToCpprest(HttpRequest request,
                                              const RequestCredentials& credentials) const {
    web::http::http_request message(request.method);
    try {
      message.set_request_uri(web::uri(request.target));
    } catch (const std::exception& error) {
      return InvalidArgument(config_.server, ": ", request.target, ": ", error.what());
    }
    web::http::http_headers& headers = message.headers();
    headers.add("Accept", request.accept);
    headers.add("User-Agent", options_.user_agent);
    if (!credentials.authorization.empty()) headers.add("Authorization", credentials.authorization);
    AddHeaders(config_.headers, headers);
    // cpprestsdk verifies the certificate against the name in the Host header, and sends this name
    // as SNI.
    if (!config_.tls_server_name.empty()) headers.add("Host", config_.tls_server_name);
    if (!request.body.empty()) message.set_body(std::move(request.body), request.content_type);
    return message;
  }

  StatusOr<std::shared_ptr<const Clients>> ClientsFor(
      const std::shared_ptr<const CertificatePair>& certificate) {
    MutexLock lock(mutex_);
    // Connections with the previous certificate are closed when their last request ends.
    if (clients_ == nullptr || clients_->certificate != certificate) {
      ASSIGN_OR_RETURN(clients_, MakeClients(certificate));
    }
    return clients_;
  }

  StatusOr<std::shared_ptr<const Clients>> MakeClients(
      const std::shared_ptr<const CertificatePair>& certificate) const {
    auto clients = std::make_shared<Clients>();
    clients->certificate = certificate;
    try {
      const web::uri server(config_.server);
      if (server.scheme() == "https") {
        ASSIGN_OR_RETURN(clients->tls,
                         TlsSettings::Create(config_.certificate_authority, certificate));
      } else if (server.scheme() != "http") {
        return InvalidArgument("server ", config_.server, ": expected https://host:port");
      }
      clients->unary = std::make_unique<http_client>(server, MakeConfig(clients->tls, false));
      clients->streams = std::make_unique<http_client>(server, MakeConfig(clients->tls, true));
    } catch (const std::exception& error) {
      return InvalidArgument("server ", config_.server, ": ", error.what());
    }
    return clients;
  }

  http_client_config MakeConfig(const std::shared_ptr<TlsSettings>& tls, bool stream) const {
    http_client_config config;
    if (stream) {
      config.set_timeout(kStreamInactivity);
    } else {
      config.set_timeout(kUnaryInactivity);
    }
    config.set_max_redirects(0);  // a redirect could send the token to any server
    config.set_validate_certificates(!config_.insecure_skip_tls_verify);
    if (tls != nullptr) {
      config.set_ssl_context_callback([tls](boost::asio::ssl::context& context) {
        const Status applied = tls->Apply(context.native_handle());
        if (!applied.ok()) throw std::runtime_error(std::string(Message(applied)));
      });
    }
    if (!config_.proxy_url.empty()) {
      config.set_proxy(Proxy());
    } else if (stream) {
      config.set_nativehandle_options([family = family_, idle = options_.keepalive_idle,
                                       secure = tls != nullptr](void* handle) {
        const std::optional<int> known = family->known();
        if (!known) return;
        using Secure = boost::asio::ssl::stream<tcp::socket&>;
        tcp::socket& socket = secure ? static_cast<Secure*>(handle)->next_layer()
                                     : *static_cast<tcp::socket*>(handle);
        OpenWithKeepalive(socket, *known, idle);
      });
    }
    return config;
  }

  web::web_proxy Proxy() const {
    const web::uri whole(config_.proxy_url);
    web::uri_builder address(whole);
    address.set_user_info("");
    web::web_proxy proxy(address.to_uri());
    const std::string user = whole.user_info();
    if (!user.empty()) {
      const size_t colon = user.find(':');
      const auto decoded = [](const std::string& text) { return web::uri::decode(text); };
      proxy.set_credentials(
          web::credentials(decoded(user.substr(0, colon)),
                           colon == std::string::npos ? "" : decoded(user.substr(colon + 1))));
    }
    return proxy;
  }

  const ClusterConfig config_;
  const TransportOptions options_;
  const std::shared_ptr<AddressFamily> family_;
  const std::shared_ptr<Register> register_;
  Mutex mutex_;
  std::shared_ptr<const Clients> clients_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace

StatusOr<std::unique_ptr<Transport>> MakeTransport(const ClusterConfig& config,
                                                   const TransportOptions& options) {
  RETURN_IF_ERROR(StartPool());
  const std::string host = HostOf(config.server);
  if (host.find(':') != std::string::npos) {
    // Reject an IPv6 address, because cpprestsdk would try to resolve it including its brackets.
    return InvalidArgument("server ", config.server,
                           ": IPv6 addresses are not supported; use the server's name");
  }
  for (const auto& [name, value] : config.headers) {
    // Reject control characters, because a line break would start another header.
    if (std::any_of(value.begin(), value.end(), IsControl)) {
      return InvalidArgument("control characters in the value of the header ", name);
    }
  }
  auto transport = std::make_unique<CpprestTransport>(config, options, FamilyOf(host));
  RETURN_IF_ERROR(transport->Check());
  return std::unique_ptr<Transport>(std::move(transport));
}

}  // namespace tfjob::kube
