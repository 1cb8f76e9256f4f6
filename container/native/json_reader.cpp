// Reads JSON objects of a known schema into columns of Arrow.
//
// It takes only what it is sure about. Any other value is left to msgspec, which alone knows the
// rules of the serde: what is refused, and why.

#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "columns.h"
#include "utf8.h"

namespace {

using namespace homeport;  // kinds, fields and columns

constexpr int kMostDepth = 64;           // of values that are skipped
constexpr int kMostDigits = 19;          // a uint64 holds the number, whatever they are
constexpr uint64_t kExact = 1ULL << 53;  // up to it each whole number is a double

// The years have twelve months and, as in the proleptic Gregorian calendar, their leap days.
int64_t days_since_1970(int64_t year, int64_t month, int64_t day) {
  const int64_t y = month <= 2 ? year - 1 : year;
  const int64_t era = y / 400;  // years are positive
  const int64_t of_era = y - era * 400;
  const int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
  return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

int days_of_month(int64_t year, int64_t month) {
  static constexpr int kDays[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  const bool is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
  return month == 2 && is_leap ? 29 : kDays[month - 1];
}

// One value. Each function returns whether it is sure; the place is of no use if not.
class Scan {
 public:
  Scan(const Fields& fields, const Columns& columns, size_t row, const char* begin,
       const char* end)
      : fields_(fields), columns_(columns), row_(row), at_(begin), end_(end) {}

  bool record() {
    skip_space();
    if (!object(0)) return false;
    skip_space();
    return at_ == end_;
  }

 private:
  void skip_space() {
    while (at_ < end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\t' || *at_ == '\r')) ++at_;
  }
  bool is_next(char wanted) {
    if (at_ == end_ || *at_ != wanted) return false;
    ++at_;
    return true;
  }
  bool is_word(std::string_view word) {
    const bool is_there = std::string_view(at_, size_t(end_ - at_)).substr(0, word.size()) == word;
    at_ += is_there ? word.size() : 0;
    return is_there;
  }

  // Read the members of an object; `member` reads the value of a name.
  template <typename Member>
  bool members(Member member) {
    if (!is_next('{')) return false;
    skip_space();
    if (is_next('}')) return true;
    for (;;) {
      std::string_view name;
      bool is_escaped = false;
      if (!text(&name, &is_escaped) || is_escaped) return false;
      skip_space();
      if (!is_next(':')) return false;
      skip_space();
      if (!member(name)) return false;
      skip_space();
      if (is_next('}')) return true;
      if (!is_next(',')) return false;
      skip_space();
    }
  }

  bool object(int32_t number) {
    const Field& field = fields_[size_t(number)];
    size_t expected = 0;
    uint64_t seen = 0;  // by places among the parts
    const bool is_sure = members([&](std::string_view name) {
      const size_t count = field.parts.size();
      for (size_t tried = 0; tried < count; ++tried) {
        const size_t place = expected + tried < count ? expected + tried : expected + tried - count;
        if (name != fields_[size_t(field.parts[place])].name) continue;
        if ((seen >> place & 1) != 0) return false;
        seen |= uint64_t{1} << place;
        expected = place + 1 == count ? 0 : place + 1;
        return value(field.parts[place]);
      }
      return skip(0);
    });
    if (!is_sure) return false;
    for (size_t place = 0; place < field.parts.size(); ++place)
      if ((fields_[size_t(field.parts[place])].form & kNeeded) != 0 && (seen >> place & 1) == 0) return false;
    if (field.is_made) columns_[size_t(number)]->set_valid(row_);
    return true;
  }

  bool value(int32_t number) {
    const Field& field = fields_[size_t(number)];
    if (is_word("null")) return (field.form & kNeeded) == 0;
    Column* column = columns_[size_t(number)].get();
    switch (field.kind) {
      case kObject: return object(number);
      case kText: return text_of(column);
      case kTruth: return truth(column);
      case kInt8: return whole<int8_t>(column);
      case kInt16: return whole<int16_t>(column);
      case kInt32: return whole<int32_t>(column);
      case kInt64: return whole<int64_t>(column);
      case kFloat: return single(column);
      case kDouble: return number_of(column);
      case kTimestamp: return timestamp(column);
      case kDate: return date(column);
      case kBytes: return false;
    }
    return false;
  }

  bool truth(Column* column) {
    const bool is_true = is_word("true");
    if (!is_true && !is_word("false")) return false;
    if (column != nullptr) column->set_truth(row_, is_true);
    return true;
  }

  uint64_t digit() { return uint64_t(*at_++ - '0'); }
  bool is_digit() const { return at_ < end_ && *at_ >= '0' && *at_ <= '9'; }

  // Read digits into `number`; return how many: 0 for none, too many, or a zero before others.
  int digits(uint64_t* number) {
    const char* begin = at_;
    while (is_digit() && at_ - begin < kMostDigits) *number = *number * 10 + digit();
    const auto count = int(at_ - begin);
    return is_digit() || (count > 1 && *begin == '0') ? 0 : count;
  }

  template <typename T>
  bool whole(Column* column) {
    const bool is_negative = is_next('-');
    uint64_t found = 0;
    if (digits(&found) == 0 || (is_negative && found == 0)) return false;
    if (at_ < end_ && (*at_ == '.' || *at_ == 'e' || *at_ == 'E')) return false;
    const auto most = uint64_t(std::numeric_limits<T>::max());
    if (found > most + (is_negative ? 1 : 0)) return false;
    if (column != nullptr) column->set(row_, T(is_negative ? 0 - found : found));
    return true;
  }

  // A number that is no zero below zero, without too many digits for a sure double.
  bool decimal(double* found) {
    static constexpr double kTens[] = {1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9,
                                       1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18,
                                       1e19, 1e20, 1e21, 1e22};
    const char* begin = at_;
    const bool is_negative = is_next('-');
    uint64_t digits_found = 0;
    int significant = digits(&digits_found);
    if (significant == 0) return false;
    if (digits_found == 0) significant = 0;
    int64_t after = 0;
    if (is_next('.')) {
      const char* first = at_;
      while (is_digit()) {
        if (significant == kMostDigits) return false;
        digits_found = digits_found * 10 + digit();
        if (digits_found > 0) ++significant;
      }
      after = at_ - first;
      if (after == 0 || after > 99) return false;  // Jackson refuses a thousand
    }
    if (is_negative && digits_found == 0) return false;
    if (at_ < end_ && (*at_ == 'e' || *at_ == 'E')) {
      ++at_;
      if (!is_next('-')) is_next('+');
      const char* first = at_;
      while (is_digit()) ++at_;
      if (at_ == first || at_ - first > 3) return false;
      if (digits_found == 0) return false;
    } else if (after == 0 || (digits_found <= kExact && after < int64_t(std::size(kTens)))) {
      // Both are exact, so that the quotient is the nearest double.
      *found = (is_negative ? -double(digits_found) : double(digits_found)) / kTens[after];
      return true;
    }
    const std::from_chars_result read = std::from_chars(begin, at_, *found);
    return read.ec == std::errc() && read.ptr == at_ && std::isnormal(*found);
  }

  bool number_of(Column* column) {
    double found = 0;
    if (!decimal(&found)) return false;
    if (column != nullptr) column->set(row_, found);
    return true;
  }

  bool single(Column* column) {
    double found = 0;
    if (!decimal(&found) || std::fabs(found) >= double(std::numeric_limits<float>::max()))
      return false;
    if (column != nullptr) column->set(row_, float(found));
    return true;
  }

  // Read text between quotes: its bytes, and whether some of them are escapes.
  bool text(std::string_view* found, bool* is_escaped) {
    if (!is_next('"')) return false;
    const char* begin = at_;
    bool is_ascii = true;
    for (;; ++at_) {
      skip_plain();
      if (at_ == end_) return false;
      const auto byte = static_cast<unsigned char>(*at_);
      if (byte == '"') break;
      if (byte >= 0x80) {
        is_ascii = false;
      } else if (byte == '\\') {
        *is_escaped = true;
        if (++at_ == end_) return false;
      } else {
        return false;  // a control character
      }
    }
    *found = {begin, size_t(at_ - begin)};
    ++at_;
    return is_ascii || is_utf8(begin, begin + found->size());
  }

  static bool is_plain(char byte) {
    return static_cast<signed char>(byte) >= 0x20 && byte != '"' && byte != '\\';
  }

  // Eight bytes at a time, then one by one.
  void skip_plain() {
    constexpr uint64_t kOnes = 0x0101010101010101, kHigh = 0x8080808080808080;
    for (; end_ - at_ >= 8; at_ += 8) {
      uint64_t bytes = 0;
      std::memcpy(&bytes, at_, 8);
      const uint64_t quotes = bytes ^ (kOnes * '"'), slashes = bytes ^ (kOnes * '\\');
      const uint64_t low = bytes - kOnes * 0x20;
      if (((bytes | low | (quotes - kOnes) | (slashes - kOnes)) & kHigh) != 0) break;
    }
    while (at_ < end_ && is_plain(*at_)) ++at_;
  }

  bool text_of(Column* column) {
    std::string_view found;
    bool is_escaped = false;
    if (!text(&found, &is_escaped)) return false;
    std::string own;
    if (column == nullptr && is_escaped) own.resize(found.size());
    char* to = column == nullptr ? own.data() : column->text.room(found.size());
    if (is_escaped) {
      const char* end = unescape(found, to);
      if (end == nullptr) return false;
      if (column != nullptr) column->text.end += int32_t(end - to);
    } else if (column != nullptr) {
      std::memcpy(to, found.data(), found.size());
      column->text.end += int32_t(found.size());
    }
    if (column != nullptr) column->set_valid(row_);
    return true;
  }

  // Write the text of escapes to `to`, which is never longer; return its end, null: not sure.
  static char* unescape(std::string_view from, char* to) {
    for (size_t i = 0; i < from.size(); ++i) {
      if (from[i] != '\\') {
        *to++ = from[i];
        continue;
      }
      static constexpr std::string_view kFrom = "\"\\/bfnrt", kTo = "\"\\/\b\f\n\r\t";
      const size_t place = kFrom.find(from[++i]);
      if (place != std::string_view::npos) {
        *to++ = kTo[place];
        continue;
      }
      uint32_t point = 0;
      if (from[i] != 'u' || !hex(from, i + 1, &point)) return nullptr;
      i += 4;
      if (point >= 0xDC00 && point <= 0xDFFF) return nullptr;
      if (point >= 0xD800 && point <= 0xDBFF) {
        uint32_t low = 0;
        if (from.substr(i + 1, 2) != "\\u" || !hex(from, i + 3, &low)) return nullptr;
        if (low < 0xDC00 || low > 0xDFFF) return nullptr;
        point = 0x10000 + ((point - 0xD800) << 10) + (low - 0xDC00);
        i += 6;
      }
      to = write_utf8(point, to);
    }
    return to;
  }

  static bool hex(std::string_view from, size_t begin, uint32_t* found) {
    if (from.size() < begin + 4) return false;
    const char* first = from.data() + begin;
    const std::from_chars_result read = std::from_chars(first, first + 4, *found, 16);
    return read.ec == std::errc() && read.ptr == first + 4;
  }

  static char* write_utf8(uint32_t point, char* to) {
    if (point < 0x80) {
      *to++ = char(point);
      return to;
    }
    const int more = point < 0x800 ? 1 : point < 0x10000 ? 2 : 3;
    static constexpr unsigned char kLead[] = {0, 0xC0, 0xE0, 0xF0};
    *to++ = char(kLead[more] | (point >> (6 * more)));
    for (int i = more - 1; i >= 0; --i) *to++ = char(0x80 | ((point >> (6 * i)) & 0x3F));
    return to;
  }

  // Read `count` digits of a time; below zero: they are not there.
  static int64_t part(std::string_view from, size_t begin, size_t count) {
    int64_t number = 0;
    if (from.size() < begin + count) return -1;
    for (size_t i = begin; i < begin + count; ++i) {
      if (from[i] < '0' || from[i] > '9') return -1;
      number = number * 10 + (from[i] - '0');
    }
    return number;
  }

  // Years at either end of Python's calendar are left to Python.
  static bool day_of(std::string_view from, int64_t* days) {
    const int64_t year = part(from, 0, 4), month = part(from, 5, 2), day = part(from, 8, 2);
    if (year < 2 || year > 9998 || from[4] != '-' || from[7] != '-') return false;
    if (month < 1 || month > 12 || day < 1 || day > days_of_month(year, month)) return false;
    *days = days_since_1970(year, month, day);
    return true;
  }

  bool date(Column* column) {
    std::string_view found;
    bool is_escaped = false;
    int64_t days = 0;
    if (!text(&found, &is_escaped) || found.size() != 10 || !day_of(found, &days)) return false;
    if (column != nullptr) column->set(row_, int32_t(days));
    return true;
  }

  // YYYY-MM-DDTHH:MM:SS, up to six digits or none, and Z, +HH:MM or nothing.
  bool timestamp(Column* column) {
    std::string_view found;
    bool is_escaped = false;
    int64_t days = 0;
    if (!text(&found, &is_escaped) || found.size() < 19 || !day_of(found, &days)) return false;
    const int64_t hour = part(found, 11, 2), minute = part(found, 14, 2);
    const int64_t second = part(found, 17, 2);
    if (found[10] != 'T' || found[13] != ':' || found[16] != ':') return false;
    if (hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 59)
      return false;
    size_t at = 19;
    int64_t micros = 0;
    if (at < found.size() && found[at] == '.') {
      size_t count = 0;
      for (++at; at < found.size() && found[at] >= '0' && found[at] <= '9'; ++at, ++count)
        micros = micros * 10 + (found[at] - '0');
      if (count == 0 || count > 6) return false;
      for (; count < 6; ++count) micros *= 10;
    }
    int64_t offset = 0;
    if (!zone(found.substr(at), &offset)) return false;
    const int64_t minutes = (days * 24 + hour) * 60 + minute - offset;
    if (column != nullptr) column->set(row_, (minutes * 60 + second) * 1000000 + micros);
    return true;
  }

  static bool zone(std::string_view from, int64_t* minutes) {
    if (from.empty() || from == "Z") return true;
    if (from.size() != 6 || (from[0] != '+' && from[0] != '-') || from[3] != ':') return false;
    const int64_t hours = part(from, 1, 2), rest = part(from, 4, 2);
    if (hours < 0 || hours > 23 || rest < 0 || rest > 59) return false;
    *minutes = (hours * 60 + rest) * (from[0] == '-' ? -1 : 1);
    return true;
  }

  // Pass over a value of a field that the schema does not have.
  bool skip(int depth) {
    if (at_ == end_ || depth == kMostDepth) return false;
    switch (*at_) {
      case '{': return members([&](std::string_view) { return skip(depth + 1); });
      case '[': return skip_list(depth);
      case '"': return text_of(nullptr);
      case 't': return is_word("true");
      case 'f': return is_word("false");
      case 'n': return is_word("null");
      default: return number_of(nullptr);
    }
  }

  bool skip_list(int depth) {
    ++at_;
    skip_space();
    if (is_next(']')) return true;
    for (;;) {
      if (!skip(depth + 1)) return false;
      skip_space();
      if (is_next(']')) return true;
      if (!is_next(',')) return false;
      skip_space();
    }
  }

  const Fields& fields_;
  const Columns& columns_;
  size_t row_;
  const char* at_;
  const char* end_;
};

}  // namespace

#pragma GCC visibility push(default)

extern "C" int64_t homeport_json_read(const void* reader, const char* header, int64_t header_size,
                                      const int32_t* ends, const char* data, const uint8_t* valid,
                                      int64_t first, int64_t rows, int32_t* unsure,
                                      ArrowArray* out) {
  return read_rows<Scan>(*static_cast<const Fields*>(reader), {header, header_size}, ends, data,
                         valid, first, rows, unsure, out);
}
