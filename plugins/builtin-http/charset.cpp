#include "builtin-http/charset.hpp"

#include <bulkhead/cpp/text.hpp>

#include <iconv.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "builtin-http/content_type.hpp"

namespace builtin_http {
namespace {

constexpr std::size_t looked_for_meta = 1024;  // bytes searched for <meta>, as in browsers

// An encoding label from the Encoding Standard and the iconv name of the encoding. Other names are
// never passed to iconv, because some of its converters have had vulnerabilities (CVE-2024-2961).
struct Label {
  std::string_view label;
  const char *name;
};
constexpr const char *utf8 = "UTF-8";
constexpr const char *western = "WINDOWS-1252";
constexpr Label labels[] = {
    {"utf-8", utf8},
    {"utf8", utf8},
    {"unicode-1-1-utf-8", utf8},
    {"us-ascii", western},
    {"ascii", western},
    {"iso-8859-1", western},
    {"iso8859-1", western},
    {"iso_8859-1", western},
    {"latin1", western},
    {"l1", western},
    {"windows-1252", western},
    {"cp1252", western},
    {"x-cp1252", western},
    {"iso-8859-2", "ISO-8859-2"},
    {"latin2", "ISO-8859-2"},
    {"iso-8859-3", "ISO-8859-3"},
    {"iso-8859-4", "ISO-8859-4"},
    {"iso-8859-5", "ISO-8859-5"},
    {"iso-8859-6", "ISO-8859-6"},
    {"iso-8859-7", "ISO-8859-7"},
    {"iso-8859-8", "ISO-8859-8"},
    {"iso-8859-8-i", "ISO-8859-8"},
    {"iso-8859-9", "WINDOWS-1254"},
    {"latin5", "WINDOWS-1254"},
    {"iso-8859-10", "ISO-8859-10"},
    {"iso-8859-13", "ISO-8859-13"},
    {"iso-8859-14", "ISO-8859-14"},
    {"iso-8859-15", "ISO-8859-15"},
    {"iso-8859-16", "ISO-8859-16"},
    {"koi8-r", "KOI8-R"},
    {"koi8-u", "KOI8-U"},
    {"ibm866", "IBM866"},
    {"cp866", "IBM866"},
    {"macintosh", "MACINTOSH"},
    {"x-mac-cyrillic", "MAC-CYRILLIC"},
    {"windows-874", "CP874"},
    {"tis-620", "CP874"},
    {"iso-8859-11", "CP874"},
    {"windows-1250", "WINDOWS-1250"},
    {"cp1250", "WINDOWS-1250"},
    {"windows-1251", "WINDOWS-1251"},
    {"cp1251", "WINDOWS-1251"},
    {"windows-1253", "WINDOWS-1253"},
    {"windows-1254", "WINDOWS-1254"},
    {"windows-1255", "WINDOWS-1255"},
    {"windows-1256", "WINDOWS-1256"},
    {"windows-1257", "WINDOWS-1257"},
    {"windows-1258", "WINDOWS-1258"},
    {"gb2312", "GB18030"},
    {"gbk", "GB18030"},
    {"gb18030", "GB18030"},
    {"x-gbk", "GB18030"},
    {"big5", "BIG5-HKSCS"},
    {"big5-hkscs", "BIG5-HKSCS"},
    {"euc-jp", "EUC-JP"},
    {"iso-2022-jp", "ISO-2022-JP"},
    {"shift_jis", "CP932"},
    {"shift-jis", "CP932"},
    {"sjis", "CP932"},
    {"x-sjis", "CP932"},
    {"windows-31j", "CP932"},
    {"euc-kr", "UHC"},
    {"ks_c_5601-1987", "UHC"},
    {"windows-949", "UHC"},
    {"utf-16", "UTF-16LE"},
    {"utf-16le", "UTF-16LE"},
    {"utf-16be", "UTF-16BE"},
};

struct Mark {
  std::string_view bytes;
  const char *name;
};
constexpr Mark marks[] = {
    {"\xEF\xBB\xBF", utf8}, {"\xFF\xFE", "UTF-16LE"}, {"\xFE\xFF", "UTF-16BE"}};

const char *iconv_name(std::string_view label) {
  const auto at = std::find_if(std::begin(labels), std::end(labels),
                               [&](const Label &l) { return l.label == label; });
  return at == std::end(labels) ? nullptr : at->name;
}

// A page that declares UTF-16 in the ASCII text of a <meta> element cannot be UTF-16. Browsers
// treat it as UTF-8.
std::string meta_charset(std::string_view body) {
  const std::string label = charset_parameter(body.substr(0, looked_for_meta));
  return label.starts_with("utf-16") ? "utf-8" : label;
}

struct IconvClose {
  void operator()(void *cd) const noexcept { iconv_close(cd); }
};
using Iconv = std::unique_ptr<void, IconvClose>;

bool convert(const char *from, std::string_view body, const std::atomic<bool> &cancelled,
             std::string *out, std::string *problem) {
  const iconv_t opened = iconv_open(utf8, from);
  if (opened == reinterpret_cast<iconv_t>(-1)) {
    *problem = std::string("this machine has no converter for the character set ") + from;
    return false;
  }
  const Iconv converter(opened);
  out->reserve(body.size() + body.size() / 8);
  char piece[16 << 10];
  // iconv() takes a non-const pointer, but does not write through it.
  auto *in = const_cast<char *>(body.data());
  std::size_t left = body.size();
  while (left > 0) {
    if (cancelled.load(std::memory_order_relaxed)) {
      *problem = "the call was cancelled";
      return false;
    }
    char *to = piece;
    std::size_t room = sizeof piece;
    const std::size_t result = iconv(opened, &in, &left, &to, &room);
    out->append(piece, static_cast<std::size_t>(to - piece));
    if (result != static_cast<std::size_t>(-1) || errno == E2BIG) continue;
    *out += bh::replacement_utf8;
    ++in;  // skips the first byte of an invalid or truncated character
    --left;
  }
  return true;
}

}  // namespace

bool to_utf8(std::string &&body, std::string_view content_type, const std::atomic<bool> &cancelled,
             std::string *out, std::string *problem) {
  std::string_view text = body;
  const char *name = nullptr;
  for (const Mark &mark : marks) {
    if (name != nullptr || !text.starts_with(mark.bytes)) continue;
    name = mark.name;
    text.remove_prefix(mark.bytes.size());
  }
  std::string label = charset_parameter(content_type);
  if (label.empty() && is_html(content_type, text)) label = meta_charset(text);
  if (name == nullptr && !label.empty()) {
    name = iconv_name(label);
    if (name == nullptr) {
      *problem = "the character set \"" + label.substr(0, 40) + "\" is not supported";
      return false;
    }
  }
  const bool good = (name == nullptr || name == utf8) && bh::is_utf8(text);
  if (name == nullptr) name = good ? utf8 : western;
  if (name != utf8) return convert(name, text, cancelled, out, problem);
  if (!good) {
    *out = bh::repaired_utf8(text);
  } else {
    *out = text.size() == body.size() ? std::move(body) : std::string(text);
  }
  return true;
}

}  // namespace builtin_http
