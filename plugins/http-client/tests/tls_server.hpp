// A TLS server with a self-signed certificate for 127.0.0.1. It responds to every request with
// "ok".
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string>
#include <thread>

namespace http_client::testing {

class TlsServer {
 public:
  TlsServer() {
    key_ = EVP_EC_gen("P-256");
    certificate_ = make_certificate();
    context_ = SSL_CTX_new(TLS_server_method());
    SSL_CTX_use_certificate(context_, certificate_);
    SSL_CTX_use_PrivateKey(context_, key_);
    listener_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t n = sizeof at;
    if (::bind(listener_, reinterpret_cast<sockaddr *>(&at), n) != 0 ||
        ::listen(listener_, 8) != 0) {
      std::abort();
    }
    ::getsockname(listener_, reinterpret_cast<sockaddr *>(&at), &n);
    port_ = ntohs(at.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~TlsServer() {
    ending_ = true;
    ::shutdown(listener_, SHUT_RDWR);
    thread_.join();
    ::close(listener_);
    SSL_CTX_free(context_);
    X509_free(certificate_);
    EVP_PKEY_free(key_);
  }
  std::string url() const { return "https://127.0.0.1:" + std::to_string(port_) + "/"; }
  int answered() const { return answered_; }

  // Writes the certificate as PEM to a temporary file, which the caller must delete.
  std::string write_certificate() const {
    char name[] = "/tmp/bulkhead-cert-XXXXXX";
    const int fd = ::mkstemp(name);
    FILE *file = ::fdopen(fd, "w");
    PEM_write_X509(file, certificate_);
    std::fclose(file);
    return name;
  }

 private:
  X509 *make_certificate() {
    X509 *x = X509_new();
    X509_set_version(x, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(x), 1);
    X509_gmtime_adj(X509_getm_notBefore(x), -3600);
    X509_gmtime_adj(X509_getm_notAfter(x), 3600);
    X509_set_pubkey(x, key_);
    X509_NAME *name = X509_get_subject_name(x);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char *>("test"), -1, -1, 0);
    X509_set_issuer_name(x, name);
    X509_EXTENSION *alt =
        X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, "IP:127.0.0.1");
    X509_add_ext(x, alt, -1);
    X509_EXTENSION_free(alt);
    X509_sign(x, key_, EVP_sha256());
    return x;
  }

  void serve() {
    for (;;) {
      const int fd = ::accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd < 0 || ending_) return;
      SSL *ssl = SSL_new(context_);
      SSL_set_fd(ssl, fd);
      char room[4096];
      if (SSL_accept(ssl) == 1 && SSL_read(ssl, room, sizeof room) > 0) {
        const std::string answer =
            "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok";
        SSL_write(ssl, answer.data(), static_cast<int>(answer.size()));
        ++answered_;
        SSL_shutdown(ssl);
      }
      SSL_free(ssl);
      ::close(fd);
    }
  }

  EVP_PKEY *key_ = nullptr;
  X509 *certificate_ = nullptr;
  SSL_CTX *context_ = nullptr;
  int listener_ = -1, port_ = 0;
  std::atomic<bool> ending_ = false;
  std::atomic<int> answered_ = 0;
  std::thread thread_;
};

}  // namespace http_client::testing
