#include "net/tls_files.h"

#include <array>
#include <cstddef>
#include <ctime>
#include <memory>
#include <string_view>
#include <utility>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <openssl/err.h>

#include "base/atomic_file.h"
#include "net/pem.h"

namespace simile::net {
namespace {

using WallTime = std::chrono::system_clock::time_point;

constexpr std::size_t kFileBytesMax = 1 << 20;

absl::Status Refuse(const std::filesystem::path& file, std::string_view why) {
  return absl::InvalidArgumentError(fmt::format("{}: {}", file.string(), why));
}

absl::StatusOr<std::string> ReadText(const std::filesystem::path& file) {
  auto text = base::ReadWholeFile(file, kFileBytesMax);
  if (!text.ok()) return Refuse(file, std::string(text.status().message()));
  if (text->empty()) return Refuse(file, "no such file, or an empty one");
  return text;
}

// How many certificates there are; -1 when one is damaged.
int CountCertificates(std::string_view text) {
  const Bio bio = BioOf(text);
  int count = 0;
  while (NextCertificate(bio.get()) != nullptr) ++count;
  const bool at_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  ERR_clear_error();
  return at_end ? count : -1;
}

WallTime TimeOf(const ASN1_TIME* time) {
  std::tm parts{};
  ASN1_TIME_to_tm(time, &parts);
  return std::chrono::system_clock::from_time_t(timegm(&parts));
}

std::string Day(WallTime time) {
  return fmt::format("{:%Y-%m-%d %H:%M:%S} UTC", fmt::gmtime(time));
}

std::string SubjectOf(const X509* certificate) {
  const Bio bio(BIO_new(BIO_s_mem()));
  X509_NAME_print_ex(bio.get(), X509_get_subject_name(certificate), 0, XN_FLAG_RFC2253);
  char* text = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &text);
  return {text, static_cast<std::size_t>(size)};
}

absl::Status CheckDates(const std::filesystem::path& file, const X509* certificate, WallTime now) {
  const WallTime begins = TimeOf(X509_get0_notBefore(certificate));
  const WallTime ends = TimeOf(X509_get0_notAfter(certificate));
  if (now > ends) {
    return Refuse(file,
                  fmt::format("the certificate expired at {}; put a new one there", Day(ends)));
  }
  if (now >= begins) return absl::OkStatus();
  return Refuse(file, fmt::format("the certificate is not valid before {}; this machine's clock "
                                  "says {}",
                                  Day(begins), Day(now)));
}

}  // namespace

absl::StatusOr<TlsContent> ReadTlsFiles(const TlsFiles& files, WallTime now) {
  TlsContent content;
  for (const auto& [file, text] : std::array{std::pair(&files.certificate, &content.certificate),
                                             std::pair(&files.key, &content.key),
                                             std::pair(&files.client_ca, &content.client_ca)}) {
    if (file->empty()) continue;
    auto read = ReadText(*file);
    if (!read.ok()) return read.status();
    *text = *std::move(read);
  }
  const Certificate certificate = NextCertificate(BioOf(content.certificate).get());
  if (certificate == nullptr || CountCertificates(content.certificate) < 1) {
    ERR_clear_error();
    return Refuse(files.certificate,
                  "no PEM certificate; it begins with -----BEGIN CERTIFICATE-----");
  }
  const Key key = KeyOf(content.key);
  if (key == nullptr) {
    ERR_clear_error();
    return Refuse(files.key,
                  "no PEM private key without a passphrase; `openssl pkey -in KEY -out NEW` "
                  "removes one");
  }
  if (X509_check_private_key(certificate.get(), key.get()) != 1) {
    ERR_clear_error();
    return Refuse(files.key, fmt::format("the key of another certificate than {}",
                                         files.certificate.string()));
  }
  const absl::Status dates = CheckDates(files.certificate, certificate.get(), now);
  if (!dates.ok()) return dates;
  if (!files.client_ca.empty() && CountCertificates(content.client_ca) < 1) {
    return Refuse(files.client_ca, "no PEM certificates of authorities, or a damaged one");
  }
  content.subject = SubjectOf(certificate.get());
  content.expires_at = TimeOf(X509_get0_notAfter(certificate.get()));
  return content;
}

}  // namespace simile::net
