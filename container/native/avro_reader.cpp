// Reads records of Avro's binary form, of a known schema, into columns of Arrow.
//
// It takes only what it is sure about. Any other value is left to fastavro and the serde, which
// alone know what is refused, and why.

#include <cstdint>
#include <cstring>

#include "columns.h"
#include "utf8.h"

namespace {

using namespace homeport;  // kinds, fields and columns

constexpr int64_t kMostDays = 2'930'000, kLeastDays = -719'000;  // within the years 1 to 9999
constexpr int64_t kDayMicros = 86'400'000'000;

// One value. Each function returns whether it is sure; the place is of no use if not.
class Scan {
 public:
  Scan(const Fields& fields, const Columns& columns, size_t row, const char* begin,
       const char* end)
      : fields_(fields), columns_(columns), row_(row), at_(begin), end_(end) {}

  bool record() { return object(0) && at_ == end_; }

 private:
  bool object(int32_t number) {
    const Field& field = fields_[size_t(number)];
    for (const int32_t part : field.parts)
      if (!value(part)) return false;
    if (field.is_made) columns_[size_t(number)]->set_valid(row_);
    return true;
  }

  bool value(int32_t number) {
    const Field& field = fields_[size_t(number)];
    if ((field.form & kOptional) != 0) {
      const int64_t null = (field.form & kNullSecond) != 0 ? 1 : 0;
      int64_t branch = 0;
      if (!whole(&branch) || (branch != 0 && branch != 1)) return false;
      if (branch == null) return true;
    }
    Column* column = columns_[size_t(number)].get();
    switch (field.kind) {
      case kObject: return object(number);
      case kText: case kBytes: return text(column, field.kind == kText);
      case kTruth: return truth(column);
      case kInt32: return limited<int32_t>(column, INT32_MIN, INT32_MAX, 1);
      case kInt64: return limited<int64_t>(column, INT64_MIN, INT64_MAX, 1);
      case kDate: return limited<int32_t>(column, kLeastDays, kMostDays, 1);
      case kTimestamp: return time(column, (field.form & kMillis) != 0 ? 1000 : 1);
      case kFloat: return raw<float>(column);
      case kDouble: return raw<double>(column);
      default: return false;
    }
  }

  // Read a number of seven bits a byte, the lowest first, whose lowest bit is its sign.
  bool whole(int64_t* found) {
    uint64_t number = 0;
    for (int shift = 0; shift < 63; shift += 7) {
      if (at_ == end_) return false;
      const auto byte = static_cast<unsigned char>(*at_++);
      number |= uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80) {
        *found = int64_t(number >> 1) ^ -int64_t(number & 1);
        return true;
      }
    }
    return false;  // of ten bytes, or of more than it needs
  }

  template <typename T>
  bool limited(Column* column, int64_t least, int64_t most, int64_t step) {
    int64_t found = 0;
    if (!whole(&found) || found < least || found > most) return false;
    if (column != nullptr) column->set(row_, T(found * step));
    return true;
  }

  bool time(Column* column, int64_t step) {
    const int64_t day = kDayMicros / step;
    return limited<int64_t>(column, kLeastDays * day, kMostDays * day, step);
  }

  bool truth(Column* column) {
    if (at_ == end_ || (*at_ != 0 && *at_ != 1)) return false;
    const bool is_true = *at_++ == 1;
    if (column != nullptr) column->set_truth(row_, is_true);
    return true;
  }

  template <typename T>
  bool raw(Column* column) {
    if (size_t(end_ - at_) < sizeof(T)) return false;
    T found = 0;
    std::memcpy(&found, at_, sizeof(T));  // both are little-endian
    at_ += sizeof(T);
    if (column != nullptr) column->set(row_, found);
    return true;
  }

  bool text(Column* column, bool is_utf8_needed) {
    int64_t size = 0;
    if (!whole(&size) || size < 0 || size > end_ - at_) return false;
    const char* begin = at_;
    at_ += size;
    if (is_utf8_needed && !is_utf8(begin, at_)) return false;
    if (column == nullptr) return true;
    if (size > 0) std::memcpy(column->text.room(size_t(size)), begin, size_t(size));
    column->text.end += int32_t(size);
    column->set_valid(row_);
    return true;
  }

  const Fields& fields_;
  const Columns& columns_;
  size_t row_;
  const char* at_;
  const char* end_;
};

}  // namespace

#pragma GCC visibility push(default)

extern "C" int64_t homeport_avro_read(const void* reader, const char* header, int64_t header_size,
                                      const int32_t* ends, const char* data, const uint8_t* valid,
                                      int64_t first, int64_t rows, int32_t* unsure,
                                      ArrowArray* out) {
  return read_rows<Scan>(*static_cast<const Fields*>(reader), {header, header_size}, ends, data,
                         valid, first, rows, unsure, out);
}
