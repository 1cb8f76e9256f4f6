#ifndef HOMEPORT_UTF8_H_
#define HOMEPORT_UTF8_H_

namespace homeport {

// Return whether Python decodes it: no surrogates, nothing overlong, nothing past U+10FFFF.
inline bool is_utf8(const char* begin, const char* end) {
  auto* at = reinterpret_cast<const unsigned char*>(begin);
  auto* last = reinterpret_cast<const unsigned char*>(end);
  while (at < last) {
    const unsigned char lead = *at++;
    int more = 0;
    unsigned char low = 0x80, high = 0xBF;
    if (lead < 0x80) continue;
    if (lead >= 0xC2 && lead <= 0xDF) {
      more = 1;
    } else if (lead >= 0xE0 && lead <= 0xEF) {
      more = 2;
      if (lead == 0xE0) low = 0xA0;
      if (lead == 0xED) high = 0x9F;
    } else if (lead >= 0xF0 && lead <= 0xF4) {
      more = 3;
      if (lead == 0xF0) low = 0x90;
      if (lead == 0xF4) high = 0x8F;
    } else {
      return false;
    }
    for (; more > 0; --more, low = 0x80, high = 0xBF) {
      if (at == last || *at < low || *at > high) return false;
      ++at;
    }
  }
  return true;
}

}  // namespace homeport

#endif  // HOMEPORT_UTF8_H_
