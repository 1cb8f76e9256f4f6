// Columns of records that a reader makes, field by field.

#ifndef HOMEPORT_COLUMNS_H_
#define HOMEPORT_COLUMNS_H_

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "arrow.h"

namespace homeport {

// In the order of KINDS in column_reader.py.
enum Kind : int32_t {
  kObject,
  kText,
  kTruth,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kFloat,
  kDouble,
  kTimestamp,
  kDate,
  kBytes
};

inline bool is_text(Kind kind) { return kind == kText || kind == kBytes; }

inline size_t width_of(Kind kind) {
  switch (kind) {
    case kInt8: return 1;
    case kInt16: return 2;
    case kInt32: case kFloat: case kDate: return 4;
    case kInt64: case kDouble: case kTimestamp: return 8;
    default: return 0;
  }
}

// Text of a column, in memory that grows.
class Text {
 public:
  ~Text() { std::free(data_); }
  Text() = default;
  Text(const Text&) = delete;
  Text& operator=(const Text&) = delete;
  // Return where `size` bytes can be written; `end` moves by what was.
  char* room(size_t size) {
    if (size_t(end) + size > capacity_) {
      const size_t wanted = (size_t(end) + size) * 2 + 64;
      void* grown = std::realloc(data_, wanted);
      if (grown == nullptr) throw std::bad_alloc();
      data_ = static_cast<char*>(grown);
      capacity_ = wanted;
    }
    return data_ + end;
  }
  void* take() {
    room(1);  // Arrow has no empty buffer
    return std::exchange(data_, nullptr);
  }
  int32_t end = 0;

 private:
  char* data_ = nullptr;
  size_t capacity_ = 0;
};

// The values of one field, in a batch of a known number of rows.
struct Column {
  Column(Kind kind, size_t rows)
      : valid((rows + 7) / 8),
        numbers(kind == kTruth ? (rows + 7) / 8
                : is_text(kind) ? sizeof(int32_t) * (rows + 1)
                                : width_of(kind) * rows) {
    std::memset(valid.as<char>(), 0, (rows + 7) / 8);
    const size_t size = kind == kTruth ? (rows + 7) / 8 : width_of(kind) * rows;
    if (!is_text(kind)) std::memset(numbers.as<char>(), 0, size);
    if (is_text(kind)) numbers.as<int32_t>()[0] = 0;
  }
  void set_valid(size_t row) {
    valid.as<uint8_t>()[row / 8] |= uint8_t(1U << (row % 8));
    ++count;
  }
  template <typename T>
  void set(size_t row, T value) {
    numbers.as<T>()[row] = value;
    set_valid(row);
  }
  void set_truth(size_t row, bool is_true) {
    if (is_true) numbers.as<uint8_t>()[row / 8] |= uint8_t(1U << (row % 8));
    set_valid(row);
  }
  Memory valid;
  Memory numbers;  // of text: where each one ends
  Text text;
  int64_t count = 0;
};

// Bits of a field's form, as in column_reader.py.
enum Form : int32_t {
  kNeeded = 1,      // JSON: no record is sure without it
  kOptional = 2,    // Avro: a union with null
  kNullSecond = 4,  // in which null is the second type
  kMillis = 8       // Avro: a time in milliseconds
};

struct Field {
  Kind kind;
  bool is_made;
  int32_t form;
  std::string name;
  std::vector<int32_t> parts;  // of an object
};

using Fields = std::vector<Field>;                      // the first one is the record
using Columns = std::vector<std::unique_ptr<Column>>;  // of the fields; null where none is made

inline ArrowArray* take(const Fields& fields, const Columns& columns, int32_t number, size_t rows,
                 ArrowArray* array) {
  const Field& field = fields[size_t(number)];
  Column& column = *columns[size_t(number)];
  const int64_t nulls = int64_t(rows) - column.count;
  void* valid = nulls == 0 ? nullptr : column.valid.take();
  if (is_text(field.kind)) {
    fill(array, int64_t(rows), nulls, {valid, column.numbers.take(), column.text.take()}, {});
  } else if (field.kind != kObject) {
    fill(array, int64_t(rows), nulls, {valid, column.numbers.take()}, {});
  } else {
    std::vector<ArrowArray*> parts;
    for (const int32_t part : field.parts)
      if (columns[size_t(part)] != nullptr)
        parts.push_back(take(fields, columns, part, rows, new_array()));
    fill(array, int64_t(rows), nulls, {valid}, parts);
  }
  return array;
}

// The bytes with which each value begins; none with others is sure.
struct Header {
  const char* data;
  int64_t size;
};

// Read `rows` values from the place `first` of an array of binary into `out`, a struct, and into
// `unsure` the rows whose values are not read, in order. Return how many; below 0: out of memory.
// `Scan(fields, columns, row, begin, end).record()` reads one, and returns whether it is sure.
template <typename Scan>
int64_t read_rows(const Fields& fields, Header header, const int32_t* ends, const char* data,
                  const uint8_t* valid, int64_t first, int64_t rows, int32_t* unsure,
                  ArrowArray* out) {
  int64_t count = 0;
  try {
    Columns columns;
    std::vector<Column*> texts;
    for (const Field& field : fields) {
      columns.push_back(field.is_made ? std::make_unique<Column>(field.kind, size_t(rows))
                                      : nullptr);
      if (field.is_made && is_text(field.kind)) texts.push_back(columns.back().get());
    }
    for (size_t row = 0; row < size_t(rows); ++row) {
      const size_t place = size_t(first) + row;
      const bool is_null = valid != nullptr && (valid[place / 8] >> (place % 8) & 1) == 0;
      if (!is_null) {
        const char *begin = data + ends[place], *end = data + ends[place + 1];
        const bool is_headed = header.size == 0 ||
                               (end - begin >= header.size &&
                                std::memcmp(begin, header.data, size_t(header.size)) == 0);
        if (!is_headed || !Scan(fields, columns, row, begin + header.size, end).record())
          unsure[count++] = int32_t(row);
      }
      for (Column* column : texts) column->numbers.as<int32_t>()[row + 1] = column->text.end;
    }
    take(fields, columns, 0, size_t(rows), out);
    return count;
  } catch (const std::bad_alloc&) {
    return -1;
  }
}

}  // namespace homeport

#endif  // HOMEPORT_COLUMNS_H_
